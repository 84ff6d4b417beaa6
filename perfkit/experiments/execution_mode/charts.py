"""The chart of when an expensive first call has paid back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, SMALL, WIDTH
from perfkit.charts.figure import INK, Kind
from perfkit.experiments.execution_mode.verdict import paying
from perfkit.experiments.execution_mode.ways import EAGER, FIT
from perfkit.findings.standing import measurement
from perfkit.findings.text import plain
from perfkit.measure.pay_back import pay_back, typical

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.findings.record import Finding
    from perfkit.measure.pay_back import Line, PayBack


_HEIGHT = 300.0
_LABEL = 17.0
# Steps that the picture shows at least, and at most.
_LEAST, _MOST = 1_000.0, 1e7
_POINTS = 60
# A file may hold any number; what no machine does is not drawn.
_LONGEST_S, _LARGEST_BATCH = 1e6, 1e6


@dataclass(frozen=True)
class _Course:
    """One variant: its line, and where it crosses the baseline's."""

    variant: str
    line: Line
    paid: PayBack | None

    def seconds(self, steps: float, batch: float) -> float:
        """How long so many steps take, the first call included."""
        return max(self.line.extra, 0.0) + steps * batch * self.line.each


def break_even(finding: Finding) -> Figure:
    """Draw how long so many steps take in each variant, its first call included."""
    title = f"{plain(finding.experiment, 40)}: when a dear first call has paid back"
    courses = list(_courses(finding))
    if len(courses) < 2:
        return canvas.message(title, "No two variants were timed.")
    batch = _batch(finding)
    lines = canvas.caption_lines(list(_caption(finding, courses)))
    height = canvas.TOP + _HEIGHT + 40 + 16 * len(lines) + 8

    def draw(drawing: Drawing) -> None:
        names = [plain(course.variant, 30) for course in courses]
        right = canvas.text_width(names, SMALL) + 40
        axes = canvas.place(
            drawing, 80, canvas.TOP + 6, WIDTH - 80 - right, _HEIGHT - 6
        )
        _set_scales(axes, courses, batch)
        for course in courses:
            _draw(axes, course, finding, batch)
        _label(axes, courses, batch)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    said = "; ".join(_in_words(course, finding, batch) for course in courses)
    return canvas.drawn(height, f"{title}. {said}.", draw)


def has_break_even(finding: Finding) -> bool:
    """Whether first calls are what the finding is about, and two were timed."""
    modes = finding.experiment == "execution-mode" and finding.baseline in (EAGER, FIT)
    return modes and len(finding.timings) > 1


def _courses(finding: Finding) -> Iterator[_Course]:
    measured = measurement(finding)
    for timing in finding.timings:
        line = typical(measured, timing.variant)
        if line is None or not _drawable(line):
            continue
        paid = pay_back(measured, timing.variant, finding.baseline)
        own = timing.variant == finding.baseline
        yield _Course(timing.variant, line, None if own else paid)


def _drawable(line: Line) -> bool:
    return 1 / _LONGEST_S**2 < line.each < _LONGEST_S and line.extra < _LONGEST_S


def _batch(finding: Finding) -> float:
    """Examples in a step; 1 where the experiment has no batches."""
    batch = finding.parameters.get("batch")
    if isinstance(batch, int | float) and 0 < batch <= _LARGEST_BATCH:
        return float(batch)
    return 1.0


def _set_scales(axes: Axes, courses: Sequence[_Course], batch: float) -> None:
    crossings = [c.paid.examples / batch for c in courses if c.paid and c.paid.examples]
    most = min(_MOST, max([_LEAST, *(10 * steps for steps in crossings)]))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, most)
    ends = [c.seconds(steps, batch) for c in courses for steps in (1, most)]
    low, high = min(ends) / 1.3, max(ends) * 1.3
    axes.set_ylim(low, high)
    curves.put(axes, curves.log_ticks(1, most), units.significant)
    axes.yaxis.set_major_locator(FixedLocator(curves.log_ticks(low, high)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: units.seconds(value)))
    axes.grid(axis="y", alpha=0.15, lw=0.8)
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.set_xlabel("steps (logarithmic)")


def _draw(axes: Axes, course: _Course, finding: Finding, batch: float) -> None:
    most = axes.get_xlim()[1]
    steps = [most ** (number / _POINTS) for number in range(_POINTS + 1)]
    seconds = [course.seconds(count, batch) for count in steps]
    colour, style = _look(course.variant, finding)
    axes.plot(steps, seconds, color=colour, linestyle=style, lw=1.8)
    paid = course.paid
    if paid and paid.paying == "pays back" and paid.examples:
        crossing = paid.examples / batch
        if crossing <= most:
            at = course.seconds(crossing, batch)
            axes.plot(crossing, at, "D", ms=7, color=colour, mec=INK, mew=0.8)


def _look(variant: str, finding: Finding) -> tuple[str, str]:
    if variant == finding.baseline:
        return INK, "--"
    return (GREEN if variant == finding.verdict.winner else BLUE), "-"


def _label(axes: Axes, courses: Sequence[_Course], batch: float) -> None:
    """Names at the right ends of the lines, moved apart where they would overlap."""
    most = axes.get_xlim()[1]
    bottom, top = (axes.transData.transform((1, y))[1] for y in axes.get_ylim())
    ends = sorted(
        (axes.transData.transform((most, c.seconds(most, batch)))[1], c.variant)
        for c in courses
    )
    heights = _apart([(at - bottom) for at, _ in ends], top - bottom)
    for (at, variant), height in zip(ends, heights, strict=True):
        end, place = (at - bottom) / (top - bottom), height / (top - bottom)
        axes.plot(
            [1, 1.03],
            [end, place],
            color=GREY,
            lw=0.8,
            transform=axes.transAxes,
            clip_on=False,
        )
        canvas.note(axes, plain(variant, 30), (1.03, place), (4, 0), fontsize=SMALL)


def _apart(wanted: Sequence[float], most: float) -> list[float]:
    """Heights in rising order, at least a label apart, none above ``most``."""
    heights = list[float]()
    for height in wanted:
        heights.append(max(height, heights[-1] + _LABEL) if heights else height)
    limit = most
    for number in reversed(range(len(heights))):
        heights[number] = min(heights[number], limit)
        limit = heights[number] - _LABEL
    return heights


def _caption(finding: Finding, courses: Sequence[_Course]) -> Iterator[str]:
    yield "a line starts at its first call and rises with its steady steps"
    yield f"dashed: {plain(finding.baseline, 40)}"
    if any(c.variant == finding.verdict.winner for c in courses):
        yield "green: the fastest"
    for course in courses:
        if course.paid and course.paid.paying == "pays back":
            after = course.paid.steps(_batch(finding))
            yield f"◆ {plain(course.variant, 30)} after {after}"


def _in_words(course: _Course, finding: Finding, batch: float) -> str:
    name = plain(course.variant, 60)
    step = units.seconds(course.line.each * batch)
    first = units.seconds(max(course.line.extra, 0.0))
    words = f"{name}: first call {first}, then {step} a step"
    if course.variant == finding.baseline:
        return f"{words}, the baseline"
    return f"{words}, {paying(course.paid, batch)}" if course.paid else words


KINDS: dict[str, Kind[Finding]] = {
    "break even": Kind(
        break_even, "When a dear first call has paid back", has_break_even
    ),
}
