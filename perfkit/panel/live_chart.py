"""The live chart: the final chart of a run, filling in, and its points over time.

What the chart shows is the widget's state, sent where it has changed. An update carries
the new points and what is being done, and nothing that the page has already. Every few
seconds all points go out as state as well: a page that missed a message is whole again
then, and one that is reloaded asks for that state.
"""

import collections
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets
from numpy.typing import NDArray

from perfkit.charts.layout import describe_others, layout, leads
from perfkit.engine.measurement import CONTROL, Measurement
from perfkit.engine.plan import (
    Event,
    Finished,
    Prepared,
    Progress,
    Sampled,
    Ticked,
    TrialEnded,
    TrialStarted,
)
from perfkit.findings.record import Finding
from perfkit.findings.report import how_sure
from perfkit.findings.standing import (
    Guess,
    Microbenchmark,
    Standing,
    guess,
    microbenchmarks,
    standings,
)
from perfkit.progress import Meter

# As many rows as a run that keeps to its budget makes, and as many as are kept.
_ROWS, CAPACITY = 480, 600
# More rows a second say no more to the eye.
_SHORTEST_S = 0.2
_NOTHING = math.nan
_FIRST = (
    "The first round is running, and the first answer comes when it ends. Hollow dots "
    "show its steps so far."
)


class Points:
    """The rows of one run so far.

    Args:
        variants: The variants to draw, in order; others are left out.
        budget: Seconds that the run will take.
        cores: What counts as the whole of the machine's processor time.
        gpus: How many GPUs there are to be seen.

    Attributes:
        load: What the columns after those of the variants hold.
        total: How many rows there have been.
    """

    def __init__(
        self, variants: Sequence[str], budget: float, cores: float, gpus: int = 0
    ) -> None:
        self._place = {name: place for place, name in enumerate(variants)}
        self._period = max(_SHORTEST_S, budget / _ROWS)
        self._cores, self._gpus = max(cores, 1.0), gpus
        self.load = ["this training", "other programs", "the machine's speed"]
        self.load += ["GPU busy"] * (gpus > 0)
        self.total = 0
        # What each variant's rates are divided by; None where they stay as they are.
        self._own: NDArray[np.float32] | None = None
        self._benchmarks: dict[str, Microbenchmark] = {}
        self._rows: collections.deque[list[float]] = collections.deque(maxlen=CAPACITY)
        self._meters = {name: Meter() for name in variants}
        self._samples: list[dict[str, float | None]] = []
        self._best_core_speed = _NOTHING
        self._now = self._last = 0.0

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return 1 + len(self._place) + len(self.load)

    def hear(self, event: Event) -> None:
        """Take in what the run told."""
        match event:
            case Prepared(notes) if microbenchmarks(notes):
                self._benchmarks = microbenchmarks(notes)
                self._own = np.full(len(self._place), _NOTHING, np.float32)
            case Ticked(variant, ticks):
                if variant in self._meters:
                    self._meters[variant].read(ticks)
                self._now = max(self._now, ticks[-1][0])
            case Sampled(values):
                self._samples.append(values)
            case TrialStarted(variant, _, at):
                if variant in self._meters:
                    self._meters[variant].begin()
                self._now = max(self._now, at)
            case TrialEnded(trial, measured):
                # Trials that took turns end together and bring one measurement.
                if trial.variant != CONTROL:
                    self._estimate(measured)
            case Finished(measured):
                self._estimate(measured)
            case Progress(spent, _):
                self._now = max(self._now, spent)

    def take(self, *, partial: bool = False) -> NDArray[np.float32]:
        """Give the rows that are new since the last call, shape (rows, width).

        With ``partial`` what is there makes a row, however little.
        """
        news = self._samples or any(meter for meter in self._meters.values())
        if self._now - self._last < self._period and not (partial and news):
            return np.empty((0, self.width), np.float32)
        row = [self._now, *(meter.take() for meter in self._meters.values())]
        row += self._load_since()
        self._last = self._now
        self._rows.append(row)
        self.total += 1
        return self._relative([row])

    def all(self) -> NDArray[np.float32]:
        """Give every row that is kept, shape (rows, width)."""
        return self._relative(list(self._rows))

    def _load_since(self) -> list[float]:
        samples, self._samples = self._samples, []
        core_speed = _mean(samples, "core_speed")
        self._best_core_speed = float(np.fmax(self._best_core_speed, core_speed))
        load = [
            *(
                # What is unknown stays so: not a number, and no whole machine.
                float(np.minimum(_mean(samples, name) / self._cores, 1.0))
                for name in ("cpu_trial", "cpu_other")
            ),
            core_speed,
        ]
        if self._gpus:
            busy = [_mean(samples, f"gpu{n}_busy") for n in range(self._gpus)]
            load.append(_mean_of(busy))
        return load

    def _relative(self, rows: list[list[float]]) -> NDArray[np.float32]:
        """The rows with the machine's speed as a share of the best seen so far."""
        numbers = np.array(rows, np.float32).reshape(-1, self.width)
        numbers[:, 1 + len(self._place) + 2] /= self._best_core_speed
        if self._own is not None:
            rates = numbers[:, 1 : 1 + len(self._place)]
            for row in rates:
                # The first rate stands for its own until that is known better.
                self._own = np.where(np.isnan(self._own), row, self._own)
            rates /= self._own
        return numbers

    def _estimate(self, measured: Measurement) -> None:
        for timing in measured.timings:
            place = self._place.get(timing.variant)
            if place is not None and self._own is not None:
                self._own[place] = timing.rate

    def picture(self, finding: Finding | None) -> dict[str, Any]:
        """Give the chart as it is so far, for a page."""
        measured = standings(finding) if finding else ()
        measured_names = {standing.variant for standing in measured}
        unmeasured = (
            Standing(variant=name, group="", unit=self._unit(name))
            for name in self._place
            if name not in measured_names
        )
        so_far = {name: meter.rate for name, meter in self._meters.items()}
        laid = layout(
            (*measured, *unmeasured),
            guess(finding) if finding else Guess(),
            finding.noise_floor if finding else None,
            so_far,
            as_share=self._own is not None,
        )
        column = 1 + len(self._place) + 1
        busy = ((row[0], row[column] * self._cores) for row in self._rows)
        return laid.for_page() | {
            "said": leads(finding, measured)
            if finding
            else _FIRST * any(so_far.values()),
            "sure": how_sure(finding.verdict) if finding else "",
            "others": describe_others(p for p in busy if not math.isnan(p[1])),
        }

    def _unit(self, variant: str) -> str:
        benchmark = self._benchmarks.get(variant)
        return benchmark.unit if benchmark else "examples"


def _mean(samples: Sequence[dict[str, float | None]], name: str) -> float:
    return _mean_of([s[name] for s in samples if name in s])


def _mean_of(values: Sequence[float | None]) -> float:
    numbers = [v for v in values if v is not None and not math.isnan(v)]
    return sum(numbers) / len(numbers) if numbers else _NOTHING


# How often all points go out, and how often the picture does where nothing was found.
KEYFRAME_S, PICTURE_S = 5.0, 1.0
_HERE = Path(__file__).parent / "static"
_SCRIPTS = ("vendor/uPlot.iife.min.js", "points.js", "plots.js", "live.js")
_STYLES = ("vendor/uPlot.min.css", "live.css", "panel.css")


def joined(names: tuple[str, ...]) -> str:
    """Several files as the one module that a page is given: no bundler, no network."""
    return "\n".join((_HERE / name).read_text(encoding="utf-8") for name in names)


_NO_RUN = "No run yet."


class LiveChart(anywidget.AnyWidget):
    """What happens in a run: its state, progress, rates and load.

    Args:
        clock: Gives seconds; it says when the next keyframe is due.
    """

    _esm = joined(_SCRIPTS)
    _css = joined(_STYLES)

    # What is drawn: names and units, set when a run begins.
    variants = traitlets.List(traitlets.Unicode()).tag(sync=True)
    load = traitlets.List(traitlets.Unicode()).tag(sync=True)
    picture = traitlets.Dict().tag(sync=True)
    span = traitlets.Float(0.0).tag(sync=True)
    capacity = traitlets.Int(CAPACITY).tag(sync=True)
    # The points at the last keyframe, and how many rows there had been by then.
    frame = traitlets.Bytes().tag(sync=True)
    total = traitlets.Int(0).tag(sync=True)
    # What can be read: the state of the panel, what is being done, and all in words.
    state = traitlets.Unicode().tag(sync=True)
    doing = traitlets.Dict().tag(sync=True)
    words = traitlets.Unicode(_NO_RUN).tag(sync=True)

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, **traits: Any
    ) -> None:
        super().__init__(**traits)
        self._clock = clock
        self._keyframe_at = self._picture_at = 0.0
        self._found: Finding | None = None

    def clear(self) -> None:
        """Take away what an earlier run drew; the state stays."""
        with self.hold_sync():
            self.picture, self.doing, self.words = {}, {}, _NO_RUN
            self.frame, self.total = b"", 0

    def begin(self, points: Points, variants: list[str], budget: float) -> None:
        """Clear the chart for a new run."""
        with self.hold_sync():
            self.variants, self.load = variants, points.load
            self.span = budget
            self._keyframe(points, {"share": 0.0}, "The run begins", None)

    def finish(self, points: Points, ended: str, finding: Finding | None) -> None:
        """Show the last points; the clock ends with them, and nothing is being done."""
        points.take(partial=True)
        with self.hold_sync():
            self.span = 0.0
            self._keyframe(points, {}, ended, finding)

    def update(
        self, points: Points, doing: dict[str, Any], finding: Finding | None
    ) -> None:
        """Send what is new.

        What is being done has ``said``, ``share`` from 0 to 1, and ``left``; there is
        no finding before a trial has ended.
        """
        rows = points.take()
        if self._clock() - self._keyframe_at >= KEYFRAME_S:
            status = ", ".join(filter(None, (doing["said"], doing["left"])))
            self._keyframe(points, doing, status, finding)
            return
        if finding is not self._found or self._clock() - self._picture_at >= PICTURE_S:
            self._draw(points, finding)
        message = {"rows": len(rows), "first": points.total - len(rows)}
        self.send({**message, "doing": doing}, [_bytes(rows)])

    def _draw(self, points: Points, finding: Finding | None) -> None:
        self._picture_at, self._found = self._clock(), finding
        self.picture = points.picture(finding)

    def _keyframe(
        self,
        points: Points,
        doing: dict[str, Any],
        status: str,
        finding: Finding | None,
    ) -> None:
        """Make all points the widget's state, and all that the chart shows words."""
        self._keyframe_at = self._clock()
        with self.hold_sync():
            self._draw(points, finding)
            if not doing and finding is None:
                # It is over, and there is nothing to show of it.
                self.picture = {}
            self.frame, self.total = _bytes(points.all()), points.total
            phrases = (
                self.picture.get(name, "") for name in ("said", "sure", "others")
            )
            rows = (row["said"] for row in self.picture.get("rows", ()))
            words = " ".join(
                f"{p.rstrip('.')}." for p in (status, *phrases, *rows) if p
            )
            self.doing, self.words = doing, f"Live chart. {words}"


def _bytes(rows: NDArray[np.float32]) -> bytes:
    return rows.tobytes()
