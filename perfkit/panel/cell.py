"""A run in a cell: the live chart of a panel while it runs, then the answer alone."""

from typing import Any, Self

import ipywidgets as widgets

from perfkit.findings.store import Recorded
from perfkit.machine.collect import machine
from perfkit.panel.live_chart import LiveChart
from perfkit.panel.view import ChartDisplay
from perfkit.progress import Board, in_html, in_text
from perfkit.questions.session import Measurer, Session

_RUNNING = (
    "Running: wait, or interrupt the kernel (\N{BLACK SQUARE}), which keeps the "
    "results so far."
)


class CellDisplay(ChartDisplay):
    """The live chart in the output of the running cell; it goes when the run ends.

    Args:
        session: What runs.
    """

    _handle: Any = None

    def __init__(self, session: Measurer[Recorded]) -> None:
        computer = session.machine if isinstance(session, Session) else machine()
        chart = LiveChart(state=_RUNNING)
        super().__init__(session, chart, computer, lambda: session.variants)
        self._box = widgets.VBox((chart,))
        for name in ("perfkit-panel", "perfkit-at-work"):
            self._box.add_class(name)

    def __enter__(self) -> Self:
        """Show the chart below the cell."""
        from IPython.display import display

        # For a front end without widgets.
        waiting = Board(doing=_RUNNING)
        texts = {"text/plain": in_text(waiting), "text/html": in_html(waiting)}
        self._handle = display(  # type: ignore[no-untyped-call]
            self._box._repr_mimebundle_() | texts, raw=True, display_id=True
        )
        return self

    def __exit__(self, *exception: object) -> None:
        """Take the chart away: what the cell gives back says all of it."""
        self._handle.update({}, raw=True)
        for widget in (self._box, self._chart):
            widget.layout.close()
            widget.close()
