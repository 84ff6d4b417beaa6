"""The chart of when an expensive first call has paid back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, SMALL, Figure, Kind
from perfkit.charts.layout import log_ticks
from perfkit.engine.measurement import PayBack, pay_back, typical
from perfkit.findings.record import Finding
from perfkit.findings.standing import measurement
from perfkit.findings.text import one_line
from perfkit.questions.execution_mode import paying
from perfkit.questions.execution_mode.variants import EAGER, FIT

# Steps that the picture shows at least, and at most.
_LEAST, _MOST = 1_000.0, 1e7
_POINTS = 60
# How far apart names stand at least, as a share of the height.
_LABEL = 17.0 / curves.HEIGHT
# A file may hold any number; what no machine does is not drawn.
_LONGEST_S, _LARGEST_BATCH = 1e6, 1e6


@dataclass(frozen=True)
class _Course:
    """The seconds of one variant: its first call beyond its steps, and each step.

    ``crossing`` is the step at which it meets the baseline, None for never.
    """

    variant: str
    first: float
    step_s: float
    paid: PayBack | None
    crossing: float | None

    def seconds(self, steps: Any) -> Any:
        """How long so many steps take, the first call included."""
        return self.first + steps * self.step_s


def break_even(finding: Finding) -> Figure:
    """Draw how long so many steps take in each variant, its first call included."""
    title = f"{finding.experiment}: when an expensive first call pays back"
    batch = finding.parameters.get("batch")
    if not isinstance(batch, int | float) or not 0 < batch <= _LARGEST_BATCH:
        # Without batches an example is a step.
        batch = 1
    courses, winner = list(_courses(finding, batch)), finding.verdict.winner
    if len(courses) < 2:
        return canvas.message(title, "No two variants were timed.")
    caption = ["each line starts with its first call and rises with its steady steps"]
    caption.append(f"dashed: {one_line(finding.baseline, 40)}")
    if any(course.variant == winner for course in courses):
        caption.append("green: the fastest")
    words = []
    for course in courses:
        first, step = units.seconds(course.first), units.seconds(course.step_s)
        pays = f", {paying(course.paid, batch)}" if course.paid else ""
        if course.variant == finding.baseline:
            pays = ", the baseline"
        name = one_line(course.variant, 30)
        words.append(f"{name}: first call {first}, then {step} a step{pays}")
        if course.paid and course.crossing:
            caption.append(f"◆ {name} after {course.paid.steps(batch)}")

    def fill(axes: Axes) -> None:
        crossings = [10 * course.crossing for course in courses if course.crossing]
        limit = min(_MOST, max([_LEAST, *crossings]))
        ends = [course.seconds(steps) for course in courses for steps in (1, limit)]
        low, high = min(ends) / 1.3, max(ends) * 1.3
        axes.set(xscale="log", yscale="log", xlim=(1, limit), ylim=(low, high))
        curves.put(axes, log_ticks(1, limit), units.significant)
        curves.ticks(axes, log_ticks(low, high), units.seconds)
        axes.set_xlabel("steps (logarithmic)")
        steps = np.geomspace(1, limit, _POINTS)
        for course in courses:
            color, style = GREEN if course.variant == winner else BLUE, "-"
            if course.variant == finding.baseline:
                color, style = INK, "--"
            axes.plot(steps, course.seconds(steps), style, color=color, lw=1.8)
            if course.crossing and course.crossing <= limit:
                at = course.crossing, course.seconds(course.crossing)
                axes.plot(*at, "D", ms=7, color=color, mec=INK, mew=0.8)
        _label(axes, courses)

    names = [one_line(course.variant, 30) for course in courses]
    right = canvas.text_width(names, SMALL) + 40
    return curves.picture(
        title, "time for so many steps", caption, words, fill, right=right
    )


def _courses(finding: Finding, batch: float) -> Iterator[_Course]:
    measured, base = measurement(finding), finding.baseline
    for name in (timing.variant for timing in finding.timings):
        line = typical(measured, name)
        if line is None or not 1 / _LONGEST_S**2 < line.example_s < _LONGEST_S:
            continue
        paid = pay_back(measured, name, base) if name != base else None
        crossing = paid.examples / batch if paid and paid.examples else None
        if line.extra < _LONGEST_S:
            first = max(line.extra, 0.0)
            yield _Course(name, first, line.example_s * batch, paid, crossing)


def _label(axes: Axes, courses: Sequence[_Course]) -> None:
    """Names at the right ends of the lines, moved apart where they would overlap."""
    limit = axes.get_xlim()[1]
    inside = axes.transScale + axes.transLimits
    ends = sorted(
        (float(inside.transform((limit, course.seconds(limit)))[1]), course.variant)
        for course in courses
    )
    places = curves.spread([end for end, _ in ends], _LABEL)
    for (end, variant), place in zip(ends, places, strict=True):
        style: Any = {"color": GREY, "lw": 0.8, "clip_on": False}
        axes.plot([1, 1.03], [end, place], transform=axes.transAxes, **style)
        canvas.note(axes, one_line(variant, 30), (1.03, place), (4, 0), fontsize=SMALL)


KINDS: dict[str, Kind[Finding]] = {
    "break even": Kind(
        break_even,
        "When an expensive first call pays back",
        # First calls are what it is about then, and not who watches a ``fit``.
        lambda f: f.baseline in (EAGER, FIT) and len(f.timings) > 1,
    ),
}
