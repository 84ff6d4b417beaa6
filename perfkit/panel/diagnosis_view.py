"""The widgets of a diagnosis' panel and how they lie on the page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from perfkit.findings.text import plain, plain_lines
from perfkit.panel import page
from perfkit.panel.controls import auto_budget_control
from perfkit.panel.live_chart import LiveChart
from perfkit.panel.view import answer_at_once, button

if TYPE_CHECKING:
    from perfkit.findings.diagnosis import Cause, Diagnosis

_APPLY = "Apply the marked swaps to copies of your training, and measure both again"


class DiagnosisView:
    """What a reader sees and presses.

    Attributes:
        budget: The seconds of a run; None for as many as it needs.
        run: Starts a diagnosis.
        stop: Ends what is running.
        chart: The live chart, with the state of the panel on top.
        card: The report, as HTML.
        charts: Its charts, as HTML.
        choices: A box to mark per cause that can be applied, by the swap's name.
        apply: Measures what is marked against the training as given.
        answer: What that brought, as HTML.
        box: All of it.
    """

    def __init__(self, budget: float | None) -> None:
        self.budget = auto_budget_control(budget)
        self.run = button("Run", "Diagnose the training", "primary")
        self.stop = button("Stop", "End the run and keep what was measured")
        self.chart = LiveChart()
        self.card, self.charts, self.answer = (widgets.HTML() for _ in range(3))
        self.choices: dict[str, Any] = {}
        self.apply = button("Apply and measure again", _APPLY)
        self.apply.layout.width = "15em"
        self._marks = widgets.VBox()
        row = widgets.Box((self.budget, self.run, self.stop))
        row.add_class("perfkit-buttons")
        parts = (row, self.chart, self.card, self.charts)
        self.box = widgets.VBox((*parts, self._marks, self.answer))
        self.box.add_class("perfkit-panel")
        self.enable(running=False)

    @property
    def marked(self) -> tuple[str, ...]:
        """The swaps that are marked."""
        return tuple(name for name, box in self.choices.items() if box.value)

    def say(self, state: str) -> None:
        """Tell the reader one sentence."""
        self.chart.state = state

    def enable(self, *, running: bool) -> None:
        """Let pressed and changed be what has a meaning now."""
        self.run.disabled = self.budget.disabled = running
        self.stop.disabled = not running
        self.apply.disabled = running or not self.choices
        for box in self.choices.values():
            box.disabled = running
        answer_at_once(
            (self.run, self.stop, self.apply, self.budget, *self.choices.values())
        )

    def clear(self) -> None:
        """Take away what an earlier diagnosis found."""
        self.card.value = self.charts.value = self.answer.value = ""
        self.choices, self._marks.children = {}, ()

    def show(self, found: Diagnosis) -> None:
        """Show the report, its charts, and what of it can be applied."""
        self.card.value = found._repr_html_()
        self.charts.value = page.charts(found)
        offered = [cause for cause in found.causes if _can_be_applied(cause)]
        self.choices = {cause.swap: _choice(cause) for cause in offered}
        lines = map(_line, offered)
        pairs = zip(self.choices.values(), lines, strict=True)
        rows = [widgets.VBox(pair) for pair in pairs]
        self._marks.children = (*rows, self.apply) if rows else ()

    def show_applied(self, found: Diagnosis) -> None:
        """Show what the marked swaps brought when they were measured again."""
        said = f"<p><b>Measured again:</b> {escape(plain(found.verdict, 600))}</p>"
        self.answer.value = said + page.charts(found)


def _can_be_applied(cause: Cause) -> bool:
    """Whether a swap takes it away, and one that a training can keep."""
    return bool(cause.swap) and cause.cause != "input-bound"


def _choice(cause: Cause) -> Any:
    gain = f"{cause.speedup.estimate:.2f}\N{MULTIPLICATION SIGN}"
    label = f"{plain(cause.cause, 40)}: {plain(cause.swap, 60)} ({gain})"
    layout = widgets.Layout(width="100%")
    wide = {"description_width": "0"}
    defect = cause.kind == "defect"
    return widgets.Checkbox(defect, description=label, style=wide, layout=layout)


def _line(cause: Cause) -> Any:
    return widgets.HTML(f"<pre>{escape(plain_lines(cause.to_type))}</pre>")
