"""The charts of where a second device pays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.charts.figure import INK, Kind
from perfkit.experiments.cpu_or_gpu import numbers, verdict
from perfkit.experiments.shared.words import brief
from perfkit.findings.standing import measurement
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.experiments.cpu_or_gpu.numbers import Crossing, Curve, Fit, Point
    from perfkit.experiments.cpu_or_gpu.verdict import Dot
    from perfkit.findings.record import Finding
    from perfkit.measure.measurement import Measurement

    Edge = tuple[float, float, float]

_EXPERIMENT = "cpu-or-gpu"
_MOST_WEIGHTS = 10**12
# The words of another batch stand a little above their point, clear of the curve.
_ABOVE = 1.07


def crossover(finding: Finding) -> Figure:
    """Draw what the second device gains over the width, and where it begins to pay."""
    measured = measurement(finding)
    first, second = numbers.devices(measured)
    title = f"{plain(finding.experiment, 40)}: what {second} gain over {first}"
    if second == "GPU":
        title = f"{plain(finding.experiment, 40)}: what the GPU gains over the CPU"
    drawn = numbers.curve(measured)
    if drawn is None:
        return canvas.message(title, "Fewer than two widths were timed on both.")
    found = numbers.crossing(drawn)
    others = _other_batches(measured, drawn)
    dots = verdict.dots(measured, drawn, _asked(finding))
    lines = canvas.caption_lines(list(_crossover_caption(finding, found, dots)))

    def draw(drawing: Drawing) -> None:
        axes = curves.axes(drawing, "times the examples per second (logarithmic)")
        _crossover_set_scales(axes, drawn, [*others, *drawn.points], dots)
        _draw_curve(axes, drawn, found)
        for point in others:
            _draw_point(axes, point, f"batch {point.batch:,}")
        for point in drawn.points:
            _draw_point(axes, point)
        for dot in dots:
            _draw_dot(axes, dot)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    words = " ".join(_crossover_in_words(drawn, found, others, dots))
    stamp = f"Measured on {canvas.origin(finding)}."
    return canvas.drawn(curves.height(lines), f"{title}. {words} {stamp}", draw)


def has_crossover(finding: Finding) -> bool:
    """Whether two devices were timed at two widths."""
    return (
        finding.experiment == _EXPERIMENT
        and numbers.curve(measurement(finding)) is not None
    )


def mark_of(point: Point) -> tuple[str, str]:
    """Colour and mark of a size: whether the second device pays there."""
    return {"pays": (GREEN, "D"), "does not": (BLUE, "o"), "open": (GREY, "s")}[
        numbers.says(point)
    ]


def _asked(finding: Finding) -> verdict.Asked:
    """The reader's models; a file may hold anything."""
    yours, weights = (finding.parameters.get(name) for name in ("yours", "weights"))
    is_count = isinstance(weights, int) and 0 < weights < _MOST_WEIGHTS
    return verdict.Asked(
        yours=yours if isinstance(yours, str) else "",
        weights=int(weights) if is_count and weights else 0,
    )


def _other_batches(measured: Measurement, drawn: Curve) -> list[Point]:
    low, high = drawn.widths[0], drawn.widths[-1]
    return [
        point
        for point in numbers.points(measured)
        if point.size and point.batch != drawn.batch and low <= point.size.width <= high
    ]


def _crossover_set_scales(
    axes: Axes, drawn: Curve, points: Sequence[Point], dots: Sequence[Dot]
) -> None:
    curves.sizes(axes, [p.size.width for p in drawn.points if p.size])
    axes.set_xlabel(f"width of the network, batch {drawn.batch:,} (logarithmic)")
    seen = [*(p.gain.ratio for p in points), *(dot.gain for dot in dots)]
    ends = [end for p in points for end in (p.gain.low, p.gain.high)]
    curves.measure(axes, [*seen, 1.0, numbers.PAYS], ends, units.ratio)


def _draw_curve(axes: Axes, drawn: Curve, found: Crossing) -> None:
    axes.fill_between(drawn.widths, drawn.low, drawn.high, color=BLUE, alpha=0.15, lw=0)
    axes.plot(drawn.widths, drawn.gain, color=BLUE, lw=1.6)
    axes.axhline(1.0, color=INK, lw=1, alpha=0.6)
    axes.axhline(numbers.PAYS, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.6)
    curves.label(axes, "pays", axes.get_xlim()[1], numbers.PAYS)
    if found.kind == "from" and found.width and found.low:
        axes.axvspan(found.low, found.high or found.width, color=GREEN, alpha=0.15)
        axes.axvline(found.width, color=GREEN, lw=1.4)
        words = f"from {units.significant(found.width, 2)}"
        curves.label(axes, words, found.width, axes.get_ylim()[0] * 1.06)


def _draw_point(axes: Axes, point: Point, words: str = "") -> None:
    if point.size is None:
        return
    (colour, mark), x = mark_of(point), point.size.width
    curves.between(axes, x, point.gain.low, point.gain.high, colour)
    inside = "none" if words else colour
    axes.plot(x, point.gain.ratio, mark, color=colour, mfc=inside, ms=8)
    if words:
        curves.label(axes, words, x, point.gain.ratio * _ABOVE)


def _draw_dot(axes: Axes, dot: Dot) -> None:
    curves.between(axes, dot.width, dot.low, dot.high, RED)
    inside = RED if dot.measured else "none"
    axes.plot(dot.width, dot.gain, "^", color=RED, mfc=inside, ms=9)
    curves.label(axes, plain(dot.what, 30), dot.width, dot.gain)


def _crossover_caption(
    finding: Finding, found: Crossing, dots: Sequence[Dot]
) -> Iterator[str]:
    yield "bar, band: 95 % interval"
    yield "◆ pays: at least a tenth faster, for sure"
    yield "● does not"
    yield "■ noise hides it"
    if found.kind == "from":
        yield f"it pays {words_of(found)}"
    if any(not dot.measured for dot in dots):
        yield "△ your network, read off the curve, not measured"
    if any(dot.measured for dot in dots):
        yield "▲ your model, measured, at the width with as much arithmetic"
    yield canvas.origin(finding)


def words_of(found: Crossing) -> str:
    """Where a crossing is."""
    high = units.significant(found.high or 0.0, 2)
    least = found.low or 0.0
    if found.width is None or not units.is_known(least, found.high or 0.0):
        return f"from width {high} on at the latest"
    width, low = (units.significant(w, 2) for w in (found.width, least))
    return f"from about width {width} on ({low} to {high})"


def _crossover_in_words(
    drawn: Curve, found: Crossing, others: Sequence[Point], dots: Sequence[Dot]
) -> Iterator[str]:
    for point in (*drawn.points, *others):
        yield f"{point.what}, batch {point.batch:,}: {brief(point.gain)}."
    for dot in dots:
        yield f"{plain(dot.what, 60)}, like width {units.significant(dot.width)}: "
        yield f"{units.ratio(dot.gain)}."
    yield {
        "from": f"It pays {words_of(found)}.",
        "always": "It pays at every width.",
        "never": "It never pays within what was tried.",
        "mixed": "It pays at some widths and not at larger ones.",
        "open": "Noise hides from where on it pays.",
    }[found.kind]


_BATCHES = 25
# The plane reaches this factor beyond the batch sizes that were measured.
_BEYOND = 4


def crossover_plane(finding: Finding) -> Figure:
    """Draw the line in the plane of width and batch beyond which the second pays."""
    title = f"{plain(finding.experiment, 40)}: where the second device pays"
    measured = measurement(finding)
    points = [p for p in numbers.points(measured) if p.size]
    if not points:
        return canvas.message(title, "No width was timed on both devices.")
    fits = numbers.fits(measured)
    batches = _batches(points)
    widest = max(p.size.width for p in points if p.size)
    edges = numbers.boundary(measured, batches, widest)
    known = {b: e for b, e in zip(batches, edges, strict=True) if e}
    lines = canvas.caption_lines(list(_plane_caption(finding, known, [*fits.values()])))

    def draw(drawing: Drawing) -> None:
        axes = curves.axes(drawing, "examples in a batch (logarithmic)")
        _plane_set_scales(axes, points, batches)
        _draw_edge(axes, known)
        for point in points:
            if point.size:
                colour, mark = mark_of(point)
                axes.plot(point.size.width, point.batch, mark, color=colour, ms=9)
                words = units.ratio(point.gain.ratio)
                curves.label(axes, words, point.size.width, point.batch)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    words = " ".join(_plane_in_words(points, known))
    stamp = f"Measured on {canvas.origin(finding)}."
    return canvas.drawn(curves.height(lines), f"{title}. {words} {stamp}", draw)


def has_plane(finding: Finding) -> bool:
    """Whether both devices' costs could be fitted."""
    return has_crossover(finding) and len(numbers.fits(measurement(finding))) > 1


def _batches(points: Sequence[Point]) -> list[float]:
    sizes = [p.batch for p in points]
    low, high = max(1.0, min(sizes) / _BEYOND), max(sizes) * _BEYOND
    return [float(batch) for batch in np.geomspace(low, high, _BATCHES)]


def _plane_set_scales(
    axes: Axes, points: Sequence[Point], batches: Sequence[float]
) -> None:
    curves.sizes(axes, [p.size.width for p in points if p.size])
    axes.set_xlabel("width of the network (logarithmic)")
    axes.set_yscale("log")
    axes.set_ylim(batches[0], batches[-1])
    axes.yaxis.set_major_locator(FixedLocator(sorted({p.batch for p in points})))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda batch, _: f"{batch:,.0f}"))


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
    yield "◆ pays"
    yield "● does not"
    yield "■ noise hides it"
    yield "number: gain as measured"
    yield canvas.origin(finding)


def _plane_in_words(points: Sequence[Point], known: dict[float, Edge]) -> Iterator[str]:
    for point in points:
        gain = units.ratio(point.gain.ratio)
        yield f"{point.what}, batch {point.batch:,}: {gain}, {numbers.says(point)}."
    for batch in list(known)[:: max(1, len(known) // 3)]:
        width, low, high = (units.significant(w, 2) for w in known[batch])
        yield (
            f"By the fit it pays from width {width} on at batch {batch:,.0f} ({low} to "
            f"{high})."
        )
    if not known:
        yield "The fitted costs do not say for sure where it pays."


KINDS: dict[str, Kind[Finding]] = {
    "crossover": Kind(
        crossover,
        "From which size on the second device pays",
        has_crossover,
        leads=True,
    ),
    "plane": Kind(
        crossover_plane, "At which widths and batch sizes it pays", has_plane
    ),
}
