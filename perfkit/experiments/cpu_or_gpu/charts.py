"""The charts of where a second device pays."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, RED, Figure, Kind
from perfkit.experiments.cpu_or_gpu import numbers
from perfkit.experiments.cpu_or_gpu.numbers import (
    Crossing,
    Curve,
    Dot,
    Edge,
    Fit,
    Point,
    Result,
)
from perfkit.experiments.shared.words import brief
from perfkit.findings.reading import note_as
from perfkit.findings.record import Finding
from perfkit.findings.standing import guess, measurement
from perfkit.findings.text import plain

_MOST_WEIGHTS = 10**12
# The words of another batch stand a little above their point, clear of the curve.
_ABOVE = 1.07


def _result(finding: Finding) -> Result:
    """What a finding shows; a file may hold any parameters."""
    yours = note_as(str, finding.parameters.get("yours")) or ""
    weights = note_as(int, finding.parameters.get("weights")) or 0
    return numbers.result(measurement(finding), yours, min(weights, _MOST_WEIGHTS))


def crossover(finding: Finding) -> Figure:
    """Draw what the second device gains over the width, and where it begins to pay."""
    shown = _result(finding)
    first, second = shown.devices
    gains = f"what {second} gain over {first}"
    if second == "GPU":
        gains = "what the GPU gains over the CPU"
    title = f"{plain(finding.experiment, 40)}: {gains}"
    curve, others = shown.curve, shown.others
    if curve is None:
        return canvas.message(title, "Fewer than three widths were timed on both.")
    found = numbers.crossing(curve)

    def fill(axes: Axes) -> None:
        curves.sizes(axes, [point.size.width for point in curve.points])
        axes.set_xlabel(f"width of the network, batch {curve.batch:,} (logarithmic)")
        points = [*others, *curve.points]
        seen = [
            *(p.gain.ratio for p in points),
            *(dot.gain.value for dot in shown.dots),
        ]
        ends = [end for p in points for end in (p.gain.low, p.gain.high)]
        curves.measure(axes, [*seen, 1.0, numbers.PAYS], ends, units.ratio)
        _draw_curve(axes, curve, found)
        for point in others:
            _draw_point(axes, point, f"batch {point.size.batch:,}")
        for point in curve.points:
            _draw_point(axes, point, "")
        for dot in shown.dots:
            _draw_dot(axes, dot)

    caption = _crossover_caption(finding, found, shown.dots)
    words = (
        *_crossover_in_words(shown, found),
        f"Measured on {canvas.origin(finding)}",
    )
    what = "times the examples per second (logarithmic)"
    return curves.picture(title, what, caption, words, fill)


_MARKS = {"pays": (GREEN, "D"), "does not": (BLUE, "o"), "open": (GREY, "s")}
_MEANT = ("◆ pays: at least a tenth faster, for sure", "● does not", "■ noise hides it")


def _draw_curve(axes: Axes, drawn: Curve, found: Crossing) -> None:
    axes.fill_between(drawn.widths, drawn.low, drawn.high, color=BLUE, alpha=0.15, lw=0)
    axes.plot(drawn.widths, drawn.gain, color=BLUE, lw=1.6)
    axes.axhline(1.0, color=INK, lw=1, alpha=0.6)
    axes.axhline(numbers.PAYS, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.6)
    curves.label(axes, "pays", axes.get_xlim()[1], numbers.PAYS)
    if found.kind == "from" and found.low:
        axes.axvspan(found.low, found.high, color=GREEN, alpha=0.15)
        axes.axvline(found.width, color=GREEN, lw=1.4)
        words = f"from {units.significant(found.width, 2)}"
        curves.label(axes, words, found.width, axes.get_ylim()[0] * 1.06)


def _draw_point(axes: Axes, point: Point, words: str) -> None:
    (colour, mark), x = _MARKS[point.says], point.size.width
    curves.between(axes, x, point.gain.low, point.gain.high, colour)
    inside = "none" if words else colour
    axes.plot(x, point.gain.ratio, mark, color=colour, mfc=inside, ms=8)
    if words:
        curves.label(axes, words, x, point.gain.ratio * _ABOVE)


def _draw_dot(axes: Axes, dot: Dot) -> None:
    curves.between(axes, dot.width, dot.gain.low, dot.gain.high, RED)
    inside = RED if dot.measured else "none"
    axes.plot(dot.width, dot.gain.value, "^", color=RED, mfc=inside, ms=9)
    curves.label(axes, plain(dot.what, 30), dot.width, dot.gain.value)


def _crossover_caption(
    finding: Finding, found: Crossing, dots: Sequence[Dot]
) -> Iterator[str]:
    yield "bar, band: 95 % interval"
    yield from _MEANT
    if found.kind == "from":
        yield f"it pays {words_of(found)}"
    if any(not dot.measured for dot in dots):
        yield "△ your network, read off the curve, not measured"
    if any(dot.measured for dot in dots):
        yield "▲ your model, measured, at the width with as much arithmetic"
    yield from guess(finding).caption
    yield canvas.origin(finding)


def words_of(found: Crossing) -> str:
    """Where a crossing is."""
    width, low, high = (
        units.significant(w, 2) for w in (found.width, found.low, found.high)
    )
    if not units.is_known(found.low, found.high):
        return f"from width {high} on at the latest"
    return f"from about width {width} on ({low} to {high})"


def _crossover_in_words(shown: Result, found: Crossing) -> Iterator[str]:
    along = shown.curve.points if shown.curve else ()
    for point in (*along, *shown.others):
        size = point.size
        yield f"{size.what}, batch {size.batch:,}: {brief(point.gain)}"
    for dot in shown.dots:
        where = f"like width {units.significant(dot.width)}"
        yield f"{plain(dot.what, 60)}, {where}: {units.ratio(dot.gain.value)}"
    yield {
        "from": f"It pays {words_of(found)}",
        "always": "It pays at every width",
        "never": "It never pays within what was tried",
        "mixed": "It pays at some widths and not at larger ones",
        "open": "Noise hides from where on it pays",
    }[found.kind]


_BATCHES = 25
# The plane reaches this factor beyond the batch sizes that were measured.
_BEYOND = 4


def crossover_plane(finding: Finding) -> Figure:
    """Draw the line in the plane of width and batch beyond which the second pays."""
    title = f"{plain(finding.experiment, 40)}: where the second device pays"
    shown = _result(finding)
    points = shown.points
    if not points:
        return canvas.message(title, "No width was timed on both devices.")
    widths, sizes = zip(*((p.size.width, p.size.batch) for p in points), strict=True)
    low, high = max(1.0, min(sizes) / _BEYOND), max(sizes) * _BEYOND
    batches = [float(batch) for batch in np.geomspace(low, high, _BATCHES)]
    edges = numbers.boundary(shown, batches, max(widths))
    known = {b: e for b, e in zip(batches, edges, strict=True) if e}

    def fill(axes: Axes) -> None:
        curves.sizes(axes, widths)
        axes.set_xlabel("width of the network (logarithmic)")
        axes.set_yscale("log")
        axes.set_ylim(batches[0], batches[-1])
        curves.ticks(axes, sorted({*map(float, sizes)}), lambda size: f"{size:,.0f}")
        _draw_edge(axes, known)
        for point in points:
            (colour, mark), size = _MARKS[point.says], point.size
            axes.plot(size.width, size.batch, mark, color=colour, ms=9)
            curves.label(axes, _gain(point), size.width, size.batch)

    caption = _plane_caption(finding, known, [*shown.fits.values()])
    words = (
        *_plane_in_words(points, known),
        f"Measured on {canvas.origin(finding)}",
    )
    return curves.picture(
        title, "examples in a batch (logarithmic)", caption, words, fill
    )


def _has_plane(finding: Finding) -> bool:
    """Whether there is a crossover, and both devices' costs could be fitted."""
    shown = _result(finding)
    return shown.curve is not None and len(shown.fits) > 1


def _draw_edge(axes: Axes, known: dict[float, Edge]) -> None:
    if not known:
        return
    batches = list(known)
    middle, low, high = zip(*known.values(), strict=True)
    axes.fill_betweenx(batches, low, high, color=GREEN, alpha=0.15, lw=0)
    axes.plot(middle, batches, color=GREEN, lw=1.6)


def _plane_caption(
    finding: Finding, known: dict[float, Edge], fits: Sequence[Fit]
) -> Iterator[str]:
    if known:
        yield "line: to its right the second device pays, by the fitted costs"
        worst = max(fit.misses for fit in fits)
        yield f"the fit misses a measured step by {units.percent(worst)} at most"
        yield "band: 95 % interval, if the fit has the right form"
    else:
        yield "the fitted costs do not say for sure where the second device pays"
    yield from _MEANT
    yield "number: gain as measured"
    yield canvas.origin(finding)


def _gain(point: Point) -> str:
    return units.ratio(point.gain.ratio) if point.gain.ends else units.UNKNOWN


def _plane_in_words(points: Sequence[Point], known: dict[float, Edge]) -> Iterator[str]:
    for point in points:
        size, gain = point.size, _gain(point)
        yield f"{size.what}, batch {size.batch:,}: {gain}, {point.says}"
    for batch in list(known)[:: max(1, len(known) // 3)]:
        width, low, high = (units.significant(w, 2) for w in known[batch])
        at = f"batch {batch:,.0f} ({low} to {high})"
        yield f"By the fit it pays from width {width} on at {at}"
    if not known:
        yield "The fitted costs do not say for sure where it pays"


KINDS: dict[str, Kind[Finding]] = {
    "crossover": Kind(
        crossover,
        "From which size on the second device pays",
        lambda f: _result(f).curve is not None,
        leads=True,
    ),
    "plane": Kind(
        crossover_plane, "At which widths and batch sizes it pays", _has_plane
    ),
}
