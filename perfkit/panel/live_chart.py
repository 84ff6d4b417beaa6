"""The live chart: a widget to which a run's points are appended as they come.

An update carries the new rows and what is being done, and nothing that the page has
already. Every few seconds the whole chart goes out as the widget's state: a page that
missed a message is whole again then, and one that is reloaded asks for that state.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from perfkit.panel.points import CAPACITY

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from perfkit.panel.points import Estimate, Points

KEYFRAME_S = 5.0
_HERE = Path(__file__).parent / "static"
_SCRIPTS = ("vendor/uPlot.iife.min.js", "points.js", "looks.js", "plots.js", "live.js")
_STYLES = ("vendor/uPlot.min.css", "live.css")


def _joined(names: tuple[str, ...]) -> str:
    """Several files as the one module that a page is given: no bundler, no network."""
    return "\n".join((_HERE / name).read_text(encoding="utf-8") for name in names)


class LiveChart(anywidget.AnyWidget):
    """What happens in a run: its state, progress, rates and load.

    Args:
        clock: Gives seconds; it says when the next keyframe is due.
    """

    _esm = _joined(_SCRIPTS)
    _css = _joined(_STYLES)

    # What is drawn: names and units, set when a run begins.
    variants = traitlets.List(traitlets.Unicode()).tag(sync=True)
    load = traitlets.List(traitlets.Unicode()).tag(sync=True)
    measure = traitlets.Unicode("examples/s").tag(sync=True)
    baseline = traitlets.Unicode().tag(sync=True)
    guess = traitlets.Dict().tag(sync=True)
    span = traitlets.Float(0.0).tag(sync=True)
    capacity = traitlets.Int(CAPACITY).tag(sync=True)
    # The points at the last keyframe, and how many rows there had been by then.
    frame = traitlets.Bytes().tag(sync=True)
    total = traitlets.Int(0).tag(sync=True)
    estimates: traitlets.List[Any] = traitlets.List().tag(sync=True)
    # What can be read: the state of the panel, what is being done, and all in words.
    state = traitlets.Unicode().tag(sync=True)
    doing = traitlets.Dict().tag(sync=True)
    words = traitlets.Unicode("No run yet.").tag(sync=True)

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, **traits: Any
    ) -> None:
        super().__init__(**traits)
        self._clock = clock
        self._keyframe_at = 0.0
        self._estimates_sent = 0

    def begin(
        self, points: Points, variants: list[str], baseline: str, budget: float
    ) -> None:
        """Clear the chart for a new run."""
        with self.hold_sync():
            self.variants, self.load = variants, points.load
            self.baseline, self.guess, self.span = baseline, {}, budget
            self.keyframe(points, {"share": 0.0}, "The run begins.")

    def finish(self, points: Points, words: str) -> None:
        """Show the last points; the clock ends with them, and nothing is being done."""
        points.take(rest=True)
        with self.hold_sync():
            self.span = 0.0
            self.keyframe(points, {}, words)

    def update(
        self, points: Points, doing: dict[str, Any], words: Callable[[], str]
    ) -> None:
        """Send what is new.

        Args:
            points: Of the run.
            doing: What is being done: ``said``, ``share`` from 0 to 1, ``left``.
            words: Says all that the chart shows; asked for at keyframes only.
        """
        rows = points.take()
        if self._clock() - self._keyframe_at >= KEYFRAME_S:
            self.keyframe(points, doing, words())
            return
        news: list[Estimate] = points.estimates[self._estimates_sent :]
        self._estimates_sent = len(points.estimates)
        message = {"rows": len(rows), "first": points.total - len(rows)}
        self.send({**message, "estimates": news, "doing": doing}, [_bytes(rows)])

    def keyframe(self, points: Points, doing: dict[str, Any], words: str) -> None:
        """Make the whole chart the widget's state."""
        self._keyframe_at = self._clock()
        self._estimates_sent = len(points.estimates)
        with self.hold_sync():
            self.measure = points.measure
            self.frame, self.total = _bytes(points.all()), points.total
            self.estimates = [list(estimate) for estimate in points.estimates]
            self.doing, self.words = doing, words


def _bytes(rows: NDArray[np.float32]) -> bytes:
    return rows.tobytes()
