"""What a browser draws: the live chart of a run, and the simulated input pipeline.

The live chart is the final chart of a run, filling in, above the machine's load. All
that it shows is the widget's state: what is being done goes out with each update, the
picture once a second, and all of it in words every few seconds. A page that is loaded
again asks for that state, and is whole then.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from perfkit.charts.layout import describe_others, layout, leads, thinned
from perfkit.engine.plan import Event, Prepared, Sampled, Ticked, TrialStarted
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

_FIRST = (
    "The first round is running, and the first answer comes when it ends. Hollow dots "
    "show its steps so far."
)


class _Meter:
    """The rate of a variant while it works, before statistics have a say.

    A trial's first tick traces and compiles; it is no rate.
    """

    def __init__(self) -> None:
        self._examples, self._seconds = 0, 0.0
        self.begin()

    def begin(self) -> None:
        """Begin another trial."""
        self._from: float | None = None
        self._first = True

    def read(self, ticks: Sequence[tuple[float, int]]) -> None:
        """Count ticks; the time before one of 0 examples is no work."""
        for at, examples in ticks:
            if examples and self._from is not None:
                if not self._first:
                    self._examples += examples
                    self._seconds += at - self._from
                self._first = False
            self._from = at

    @property
    def rate(self) -> float | None:
        """Of all that was read; None before there is one."""
        return self._examples / self._seconds if self._seconds else None


class Points:
    """What one run has told so far, as its chart shows it.

    It draws these variants, in order; all ``cores`` are the whole of the machine's
    processor time. ``total`` is how many samples of the machine there have been.
    """

    def __init__(self, variants: Sequence[str], cores: float) -> None:
        self.total = 0
        self._cores = max(cores, 1.0)
        self._benchmarks: dict[str, Microbenchmark] = {}
        self._meters = {name: _Meter() for name in variants}
        # When, and how many cores the run and others kept busy.
        self._load: list[tuple[float, float, float]] = []

    def hear(self, event: Event) -> None:
        """Take in what the run told."""
        match event:
            case Prepared(notes):
                self._benchmarks = microbenchmarks(notes)
            case TrialStarted(variant, _, _) if variant in self._meters:
                self._meters[variant].begin()
            case Ticked(variant, ticks) if variant in self._meters:
                self._meters[variant].read(ticks)
            case Sampled(values):
                self.total += 1
                at, mine, others = map(values.get, ("t", "cpu_trial", "cpu_other"))
                if at is not None and mine is not None and others is not None:
                    self._load.append((at, mine, others))

    def picture(self, finding: Finding | None, span: float = 0.0) -> dict[str, Any]:
        """Give the chart so far, for a page; the run takes ``span`` seconds."""
        measured = standings(finding) if finding else ()
        rows = {standing.variant: standing for standing in measured}
        for name in self._meters:
            benchmark = self._benchmarks.get(name)
            unit = benchmark.unit if benchmark else "examples"
            rows.setdefault(name, Standing(variant=name, group="", unit=unit))
        so_far = {name: meter.rate for name, meter in self._meters.items()}
        laid = layout(
            [*rows.values()],
            guess(finding) if finding else Guess(),
            finding.noise_floor if finding else None,
            so_far,
            as_share=bool(self._benchmarks),
        )
        first = _FIRST if any(so_far.values()) else ""
        return laid.for_page() | {
            "said": leads(finding, measured) if finding else first,
            "sure": how_sure(finding.verdict) if finding else "",
            "others": describe_others([others for *_, others in self._load]),
            "strip": self._strip(span),
            "total": self.total,
        }

    def _strip(self, span: float) -> list[tuple[float, float, float]]:
        """When, and which share of the machine the run and with it others had by then.

        Times are shares of the run's.
        """
        if len(self._load) < 2:
            return []
        when, mine, others = thinned(*zip(*self._load, strict=True))
        end = max(span, when[-1])
        return [
            (round(at / end, 4), self._share(run), self._share(run + rest))
            for at, run, rest in zip(when, mine, others, strict=True)
        ]

    def _share(self, cores: float) -> float:
        return round(min(1.0, max(0.0, cores / self._cores)), 3)


# How often the picture goes out where nothing was found, and how often the words do.
PICTURE_S, WORDS_S = 1.0, 5.0
_HERE = Path(__file__).parent / "static"


def joined(names: tuple[str, ...]) -> str:
    """Several files as the one module that a page is given: no bundler, no network."""
    return "\n".join((_HERE / name).read_text(encoding="utf-8") for name in names)


# Stands below a widget, and is seen where a page was reloaded once the kernel was gone:
# there JupyterLab says that a model was not found, which tells nobody what to do. An
# exported page leaves it out: perfkit/findings/page/notebook.py.
LOST = {"text/html": joined(("lost.html",)), "text/plain": ""}
_NO_RUN = "No run yet."
# By this type a page knows a widget, in every version of ipywidgets.
_VIEW = "application/vnd.jupyter.widget-view+json"


class LiveChart(anywidget.AnyWidget):
    """What happens in a run: its state, progress, rates and load.

    The seconds of ``clock`` say when the next picture is due.
    """

    _esm = joined(("live.js",))
    _css = joined(("live.css", "panel.css"))

    # What is drawn, what is being done, the state of the panel, and all in words.
    picture = traitlets.Dict().tag(sync=True)
    doing = traitlets.Dict().tag(sync=True)
    state = traitlets.Unicode().tag(sync=True)
    words = traitlets.Unicode(_NO_RUN).tag(sync=True)

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, **traits: Any
    ) -> None:
        super().__init__(**traits)
        self._clock = clock
        self._span = self._words_at = self._picture_at = 0.0
        self._found: Finding | None = None

    def clear(self) -> None:
        """Take away what an earlier run drew; the state stays."""
        with self.hold_sync():
            self.picture, self.doing, self.words = {}, {}, _NO_RUN

    def begin(self, points: Points, span: float) -> None:
        """Draw a run that begins, and will take so many seconds."""
        self._span = span
        with self.hold_sync():
            self.doing = {"share": 0.0}
            self._draw(points, None)
            self._describe("The run begins")

    def update(
        self, points: Points, doing: dict[str, Any], finding: Finding | None
    ) -> None:
        """Send what is new.

        What is being done has ``said``, ``share`` from 0 to 1, and ``left``; there is
        no finding before a trial has ended.
        """
        now = self._clock()
        with self.hold_sync():
            self.doing = doing
            if finding is not self._found or now - self._picture_at >= PICTURE_S:
                self._draw(points, finding)
            if now - self._words_at >= WORDS_S:
                status = ", ".join(filter(None, (doing["said"], doing["left"])))
                self._describe(status)

    def finish(self, points: Points, ended: str, finding: Finding | None) -> None:
        """Draw all of a run that is over; without a finding there is nothing of it."""
        self._span = 0.0
        with self.hold_sync():
            self.doing = {}
            self._draw(points, finding)
            if finding is None:
                self.picture = {}
            self._describe(ended)

    def _draw(self, points: Points, finding: Finding | None) -> None:
        self._picture_at, self._found = self._clock(), finding
        self.picture = points.picture(finding, self._span)

    def _describe(self, status: str) -> None:
        """Say in words all that the chart shows."""
        self._words_at = self._clock()
        phrases = [self.picture.get(name, "") for name in ("said", "sure", "others")]
        if unit := self.picture.get("unit"):
            phrases.append(f"Axis: {unit}")
        rows = (row["said"] for row in self.picture.get("rows", ()))
        words = " ".join(f"{p.rstrip('.')}." for p in (status, *phrases, *rows) if p)
        self.words = f"Live chart. {words}"


def page_data(box: Any, chart: LiveChart) -> tuple[dict[str, Any], dict[str, Any]]:
    """What shows a box that holds a chart on a page: data by type, and metadata.

    ipywidgets 7 gives none of a box. anywidget gives that of the chart in any version,
    with the metadata that let Colab load a widget which it does not know.
    """
    data, metadata = chart._repr_mimebundle_() or ({}, {})
    return {_VIEW: {**data[_VIEW], "model_id": box.model_id}}, metadata


_STATIC = (
    "<p>Sliders here simulate an input pipeline. To move them, open this notebook in "
    "JupyterLab, Jupyter Notebook or VS Code and run its cells.</p>"
)


class PipelineSimulator(anywidget.AnyWidget):
    """Sliders, a timeline of twelve batches, and images per second.

    Attributes:
        start: The fields of a ``Pipeline`` that it begins with.
        measured: Those that were measured, as ``pipeline``; ``square_ms``, in which one
            core decodes only the squares of a batch, or 0; and the measured ``rates``,
            as text. Empty where there is nothing to use.
    """

    _esm = joined(("simulation.js", "simulator.js"))
    _css = joined(("simulator.css",))

    start = traitlets.Dict().tag(sync=True)
    measured = traitlets.Dict().tag(sync=True)

    def __repr__(self) -> str:
        return "<a simulated input pipeline>"

    def _ipython_display_(self) -> None:
        from IPython.display import display

        forms = self._repr_mimebundle_() or ({}, {})
        # A page that is exported has no kernel, no script and so no sliders.
        static: dict[str, Any] = {"text/html": _STATIC, "text/plain": repr(self)}
        display(  # type: ignore[no-untyped-call]
            {**forms[0], **static}, metadata=forms[1], raw=True
        )
        display(LOST, raw=True)  # type: ignore[no-untyped-call]
