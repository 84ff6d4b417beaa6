"""What do several devices bring? Rate and efficiency over their number, and the ideal.

All of it comes from the finding, so that a recorded one is drawn like one's own, with
the machine and the day that it was measured on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas, curves, scales
from perfkit.charts.canvas import BLUE, GREEN, RED, SMALL
from perfkit.charts.svg import INK
from perfkit.experiments.scaling import numbers
from perfkit.experiments.scaling.devices import GPU
from perfkit.experiments.scaling.names import FED, OWN, SHARED
from perfkit.findings.standing import measurement
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.experiments.scaling.numbers import Point
    from perfkit.findings.record import Finding
    from perfkit.measure.estimate import Estimate

    Series = dict[str, tuple[Point, ...]]

_EXPERIMENT = "scaling"
# Colour, mark, and what the caption calls it.
_LOOKS = {
    "": (BLUE, "o", "● batch at hand"),
    FED: (RED, "^", "△ fed from JPEGs"),
    OWN: (GREEN, "s", "□ gradients not summed: another training"),
}
_WIDE, _HIGH = 258, 250
_LEFTS = (86, 450)
# The marks of the ways stand side by side, so many of the widths of the axes apart.
_BESIDE = 0.022
_DASHED = (0, (4, 3))


def scaling(finding: Finding) -> Figure:
    """Draw rate and efficiency over the number of devices, with the ideal lines."""
    measured = measurement(finding)
    of = numbers.kind(measured)
    title = f"{plain(finding.experiment, 40)}: what several {of}s bring"
    series = {way: numbers.points(measured, way) for way in _LOOKS}
    if len(series[""]) < 2:
        return canvas.message(title, f"Fewer than two numbers of {of}s were timed.")
    shared = of != GPU
    lines = canvas.caption_lines(list(_caption(finding, series, shared=shared)))

    def draw(drawing: Drawing) -> None:
        _draw_rates(_axes(drawing, 0, "examples per second"), series)
        share = _axes(drawing, 1, f"efficiency: rate over n times that of 1 {of}")
        _draw_efficiency(share, series, shared=shared)
        for axes in drawing.axes:
            axes.set_xlabel(f"number of {of}s")
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    words = " ".join([*_in_words(series), *([SHARED] if shared else [])])
    alt = f"{title}. {words} Measured on {canvas.origin(finding)}."
    height = canvas.TOP + 18 + _HIGH + 44 + 16 * len(lines) + 8
    return canvas.drawn(height, alt, draw)


def has_scaling(finding: Finding) -> bool:
    """Whether several numbers of devices were timed."""
    return (
        finding.experiment == _EXPERIMENT
        and len(numbers.points(measurement(finding))) > 1
    )


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
    curves.even(axes, max(ideal, *rates), _rate)
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
    scales.put(axes, [float(count) for count in reversed(counts)], lambda n: f"{n:.0f}")


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
    for number, (way, points) in enumerate(series.items()):
        colour, mark, _ = _LOOKS[way]
        aside = (number - 1) * _BESIDE * (high - low)
        at = [(point.count + aside, value(point)) for point in points]
        axes.plot([x for x, _ in at], [y.value for _, y in at], color=colour, lw=1.2)
        for x, y in at:
            curves.between(axes, x, y.low, y.high, colour)
            inside = colour if not way else "none"
            axes.plot(x, y.value, mark, color=colour, mfc=inside, ms=7)


def _caption(finding: Finding, series: Series, *, shared: bool) -> Iterator[str]:
    yield "bar: 95 % interval"
    yield from (_LOOKS[way][2] for way, points in series.items() if points)
    yield "dashed: n times the rate of one"
    if shared:
        yield "dashed 1/n: one processor shared at no cost"
        yield SHARED
    yield canvas.origin(finding)


def _in_words(series: Series) -> Iterator[str]:
    for points in series.values():
        for point in points:
            share, timing = point.efficiency, point.timing
            rate = units.rate_between(timing.rate, timing.low, timing.high)
            reached = units.between(share.value, share.low, share.high, units.percent)
            yield f"{plain(timing.variant, 60)}: {rate}, efficiency {reached}."


def _rate(value: float) -> str:
    return units.significant(value)
