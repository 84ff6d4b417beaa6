"""The charts of what several devices bring."""

from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from perfkit import units
from perfkit.charts import canvas, curves, rows, scale
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED, SMALL
from perfkit.charts.figure import INK, Figure, Kind
from perfkit.experiments.scaling import numbers
from perfkit.experiments.scaling.numbers import FED, OWN, SHARED, Point, Sum
from perfkit.experiments.scaling.work import GPU
from perfkit.experiments.shared.words import between
from perfkit.findings.record import Finding
from perfkit.findings.standing import guess, measurement
from perfkit.findings.text import plain
from perfkit.measure.statistics import Estimate

Series = dict[str, tuple[Point, ...]]

# Colour, mark, and what the caption calls it.
_LOOKS = {
    "": (BLUE, "o", "● batch at hand"),
    FED: (RED, "^", "△ fed from JPEGs"),
    OWN: (GREEN, "s", "□ gradients not summed: another training"),
}
_WIDE, _HIGH = 258, 250
_LEFTS = (86, 450)
# The marks of the variants stand side by side, so many of the widths of the axes apart.
_BESIDE = 0.022
_DASHED = (0, (4, 3))


def scaling(finding: Finding) -> Figure:
    """Draw rate and efficiency over the number of devices, with the ideal lines."""
    measured = measurement(finding)
    of = numbers.kind(measured)
    title = f"{plain(finding.experiment, 40)}: what several {of}s bring"
    series = {how: numbers.points(measured, how) for how in _LOOKS}
    if len(series[""]) < 2:
        return canvas.message(title, f"Fewer than two numbers of {of}s were timed.")
    shared, by = [SHARED] if of != GPU else [], canvas.origin(finding)
    lines = canvas.caption_lines(
        [
            "bar: 95 % interval",
            *(_LOOKS[how][2] for how, points in series.items() if points),
            "dashed: n times the rate of one",
            *(["dashed 1/n: one processor shared at no cost"] if shared else []),
            *shared,
            *guess(finding).caption,
            by,
        ]
    )

    def draw(drawing: Drawing) -> None:
        _draw_rates(_axes(drawing, 0, "examples per second"), series)
        share = _axes(drawing, 1, f"efficiency: rate over n times that of 1 {of}")
        _draw_efficiency(share, series, shared=bool(shared))
        for axes in drawing.axes:
            axes.set_xlabel(f"number of {of}s")

    said = [_in_words(point) for points in series.values() for point in points]
    alt = " ".join([f"{title}.", *said, *shared, f"Measured on {by}."])
    height = canvas.TOP + 18 + _HIGH + 44 + 16 * len(lines) + 8
    return canvas.drawn(title, lines, height, alt, draw)


def _in_words(point: Point) -> str:
    rate = units.rate_between(point.rate.value, point.rate.low, point.rate.high)
    reached = between(point.efficiency, units.percent)
    return f"{plain(point.timing.variant, 60)}: {rate}, efficiency {reached}."


def _axes(drawing: Drawing, which: int, what: str) -> Axes:
    axes = canvas.place(drawing, _LEFTS[which], canvas.TOP + 18, _WIDE, _HIGH)
    axes.grid(axis="y", alpha=0.15, lw=0.8)
    axes.tick_params(axis="y", labelsize=SMALL)
    canvas.note(axes, what, (0, 1), (-_LEFTS[0] + 12, 12) if not which else (-44, 12))
    return axes


def _draw_rates(axes: Axes, series: Series) -> None:
    first, *_, last = series[""]
    ideal = last.count * first.timing.rate
    _set_counts(axes, series)
    rates = [point.timing.rate for points in series.values() for point in points]
    curves.even(axes, max(ideal, *rates), units.significant)
    _draw_line(axes, last.count, lambda count: count * first.timing.rate)
    _draw_series(axes, series, lambda point: point.rate)


def _draw_efficiency(axes: Axes, series: Series, *, shared: bool) -> None:
    most = series[""][-1].count
    highs = [p.efficiency.value for points in series.values() for p in points]
    _set_counts(axes, series)
    curves.even(axes, max(1.0, *highs), units.percent)
    _draw_line(axes, most, lambda count: 1.0)
    if shared:
        _draw_line(axes, most, lambda count: 1 / count, "1/n")
    _draw_series(axes, series, lambda point: point.efficiency)


def _set_counts(axes: Axes, series: Series) -> None:
    counts = [point.count for point in series[""]]
    low, high = counts[0], counts[-1]
    room = 0.14 * (high - low)
    axes.set_xlim(low - room, high + room)
    # The most of them must be there to be read.
    curves.put(axes, [float(count) for count in reversed(counts)], lambda n: f"{n:.0f}")


def _draw_line(
    axes: Axes, most: int, at: Callable[[float], float], words: str = "ideal"
) -> None:
    """A dashed line of what is to be reached, from one device to the most."""
    counts = [1 + (most - 1) * step / 60 for step in range(61)]
    axes.plot(counts, [at(n) for n in counts], color=INK, lw=1, ls=_DASHED, alpha=0.6)
    curves.label(axes, words, most, at(most))


def _draw_series(
    axes: Axes, series: Series, value: Callable[[Point], Estimate]
) -> None:
    low, high = axes.get_xlim()
    for number, (how, points) in enumerate(series.items()):
        colour, mark, _ = _LOOKS[how]
        aside = (number - 1) * _BESIDE * (high - low)
        at = [(point.count + aside, value(point)) for point in points]
        axes.plot([x for x, _ in at], [y.value for _, y in at], color=colour, lw=1.2)
        for x, y in at:
            curves.between(axes, x, y.low, y.high, colour)
            inside = colour if not how else "none"
            axes.plot(x, y.value, mark, color=colour, mfc=inside, ms=7)


# So many times the longest time seen an interval may reach before it is cut.
_REACH = 1.6


def sums(finding: Finding) -> Figure:
    """Draw for each number of devices what the sum was to take and what it took."""
    measured = measurement(finding)
    of, found = numbers.kind(measured), numbers.sums(measured)
    title = f"{plain(finding.experiment, 40)}: summing the gradients of {of}s"
    if not found:
        return canvas.message(title, "No sum was timed against a step without it.")
    shared = [SHARED] if of != GPU else []
    lines = canvas.caption_lines(
        [
            "blue: computed from what the link copies, not measured",
            "● and line: seen, with its 95 % interval",
            "hatched: the rest, which the link does not explain and nothing measured",
            *shared,
            canvas.origin(finding),
        ]
    )
    said = [(numbers.of(of, one.count), _beside(one)) for one in found]

    def draw(axes: Axes) -> None:
        high = _REACH * max(max(one.seen.value, _expected(one)) for one in found)
        for row, one in enumerate(found):
            _draw_row(axes, row, one, high)
        axes.set_xlim(0, high)
        curves.put(axes, scale.even_ticks(0, high), units.seconds)
        axes.set_xlabel("time of each step")

    words = [f"{label}: {seen}, {more}." for label, (seen, more) in said]
    words += [*shared, f"Measured on {canvas.origin(finding)}."]
    alt = f"{title}. {' '.join(words)}"
    return rows.picture(title, said, lines, draw, alt=alt, axis=48)


def _expected(one: Sum) -> float:
    return one.predicted.value if one.predicted else 0.0


def _draw_row(axes: Axes, row: int, one: Sum, high: float) -> None:
    expected, seen = _expected(one), max(one.seen.value, 0.0)
    axes.barh(row, expected, 0.5, facecolor=BLUE, alpha=0.75, lw=0)
    rest: Any = {"facecolor": GREY, "hatch": "xxxx", "edgecolor": INK}
    axes.barh(row, max(seen - expected, 0.0), 0.5, expected, alpha=0.75, lw=0, **rest)
    low, top = max(one.seen.low, 0.0), min(one.seen.high, high)
    axes.hlines(row, low, max(low, top), colors=INK, lw=2.2)
    axes.plot(seen, row, "o", color=INK, ms=6)


def _beside(one: Sum) -> tuple[str, str]:
    seen = f"seen {between(one.seen, units.seconds)}"
    if one.predicted is None:
        return seen, "nothing was predicted"
    return seen, f"computed {between(one.predicted, units.seconds)}"


def _has_several(finding: Finding) -> bool:
    return len(numbers.points(measurement(finding))) > 1


def _has_sums(finding: Finding) -> bool:
    return bool(numbers.sums(measurement(finding)))


KINDS: dict[str, Kind[Finding]] = {
    "scaling": Kind(scaling, "What several devices bring", _has_several, leads=True),
    "sums": Kind(sums, "What summing gradients takes", _has_sums, leads=True),
}
