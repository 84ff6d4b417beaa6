"""From which width on does the second device pay? Its gain over the width, as a curve.

All of it comes from the finding, so that a recorded one is drawn like one's own, with
the machine and the day that it was measured on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.charts.svg import INK
from perfkit.experiments.cpu_or_gpu import facts, numbers, where
from perfkit.experiments.shared.words import brief
from perfkit.findings.standing import measurement
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.experiments.cpu_or_gpu.facts import Dot
    from perfkit.experiments.cpu_or_gpu.numbers import Curve, Point
    from perfkit.experiments.cpu_or_gpu.where import Crossing
    from perfkit.findings.record import Finding
    from perfkit.measure.measurement import Measurement

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
    found = where.crossing(drawn)
    others = _other_batches(measured, drawn)
    dots = facts.dots(measured, drawn, _asked(finding))
    lines = canvas.caption_lines(list(_caption(finding, found, dots)))

    def draw(drawing: Drawing) -> None:
        axes = curves.axes(drawing, "times the examples per second (logarithmic)")
        _set_scales(axes, drawn, [*others, *drawn.points], dots)
        _draw_curve(axes, drawn, found)
        for point in others:
            _draw_point(axes, point, f"batch {point.batch:,}")
        for point in drawn.points:
            _draw_point(axes, point)
        for dot in dots:
            _draw_dot(axes, dot)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    words = " ".join(_in_words(drawn, found, others, dots))
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
        where.says(point)
    ]


def _asked(finding: Finding) -> facts.Asked:
    """The reader's models; a file may hold anything."""
    yours, weights = (finding.parameters.get(name) for name in ("yours", "weights"))
    is_count = isinstance(weights, int) and 0 < weights < _MOST_WEIGHTS
    return facts.Asked(
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


def _set_scales(
    axes: Axes, drawn: Curve, points: Sequence[Point], dots: Sequence[Dot]
) -> None:
    curves.sizes(axes, [p.size.width for p in drawn.points if p.size])
    axes.set_xlabel(f"width of the network, batch {drawn.batch:,} (logarithmic)")
    seen = [*(p.gain.ratio for p in points), *(dot.gain for dot in dots)]
    ends = [end for p in points for end in (p.gain.low, p.gain.high)]
    curves.measure(axes, [*seen, 1.0, where.PAYS], ends, units.ratio)


def _draw_curve(axes: Axes, drawn: Curve, found: Crossing) -> None:
    axes.fill_between(drawn.widths, drawn.low, drawn.high, color=BLUE, alpha=0.15, lw=0)
    axes.plot(drawn.widths, drawn.gain, color=BLUE, lw=1.6)
    axes.axhline(1.0, color=INK, lw=1, alpha=0.6)
    axes.axhline(where.PAYS, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.6)
    curves.label(axes, "pays", axes.get_xlim()[1], where.PAYS)
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


def _caption(finding: Finding, found: Crossing, dots: Sequence[Dot]) -> Iterator[str]:
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


def _in_words(
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
