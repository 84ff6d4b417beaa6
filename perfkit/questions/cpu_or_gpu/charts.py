"""The chart of where a second device pays."""

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, RED, Figure, Kind
from perfkit.errors import BadParameterError
from perfkit.findings.record import Finding
from perfkit.findings.standing import guess, measurement
from perfkit.findings.text import plain
from perfkit.questions.cpu_or_gpu import CpuOrGpu, numbers
from perfkit.questions.cpu_or_gpu.numbers import Crossing, Curve, Dot, Point, Result
from perfkit.questions.shared.words import brief

# The words of another batch stand a little above their point, clear of the curve.
_ABOVE = 1.07


def _result(finding: Finding) -> Result:
    try:
        question = CpuOrGpu(**finding.parameters)
    except (BadParameterError, TypeError):
        # A file may hold any parameters.
        question = CpuOrGpu()
    return question.result(measurement(finding))


def crossover(finding: Finding) -> Figure:
    """Draw what the second device gains over the width, and where it begins to pay."""
    result = _result(finding)
    subject = "what all cores gain over one core"
    if result.devices[1] == "GPU":
        subject = "what the GPU gains over the CPU"
    title = f"{plain(finding.experiment, 40)}: {subject}"
    curve, off_curve = result.curve, result.off_curve
    if curve is None:
        return canvas.message(title, "Fewer than three widths were timed on both.")
    crossing = numbers.crossing(curve)

    def fill(axes: Axes) -> None:
        curves.sizes(axes, [point.size.width for point in curve.points])
        axes.set_xlabel(f"width of the network, batch {curve.batch:,} (logarithmic)")
        gains = [point.gain for point in result.points]
        dots = [dot.gain.value for dot in result.dots]
        middles = [*(gain.ratio for gain in gains), *dots, 1.0, numbers.PAYS]
        ends = [end for gain in gains for end in (gain.low, gain.high)]
        curves.measure(axes, middles, ends, units.ratio)
        _draw_curve(axes, curve, crossing)
        for point in off_curve:
            _draw_point(axes, point, f"batch {point.size.batch:,}")
        for point in curve.points:
            _draw_point(axes, point, "")
        for dot in result.dots:
            _draw_dot(axes, dot)

    caption = _crossover_caption(finding, crossing, result.dots)
    words = _crossover_in_words(finding, result, crossing)
    label = "times the examples per second (logarithmic)"
    return curves.picture(title, label, caption, words, fill)


_MARKS = {"pays": (GREEN, "D"), "does not": (BLUE, "o"), "open": (GREY, "s")}
_MEANT = ("◆ pays: at least a tenth faster, for sure", "● does not", "■ noise hides it")


def _draw_curve(axes: Axes, curve: Curve, crossing: Crossing) -> None:
    axes.fill_between(curve.widths, curve.low, curve.high, color=BLUE, alpha=0.15, lw=0)
    axes.plot(curve.widths, curve.gain, color=BLUE, lw=1.6)
    axes.axhline(1.0, color=INK, lw=1, alpha=0.6)
    axes.axhline(numbers.PAYS, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.6)
    curves.label(axes, "pays", axes.get_xlim()[1], numbers.PAYS)
    if crossing.kind == "from" and crossing.low:
        axes.axvspan(crossing.low, crossing.high, color=GREEN, alpha=0.15)
        axes.axvline(crossing.width, color=GREEN, lw=1.4)
        words = f"from {units.significant(crossing.width, 2)}"
        curves.label(axes, words, crossing.width, axes.get_ylim()[0] * 1.06)


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
    curves.label(axes, plain(dot.name, 30), dot.width, dot.gain.value)


def _crossover_caption(
    finding: Finding, crossing: Crossing, dots: Sequence[Dot]
) -> Iterator[str]:
    yield "bar, band: 95 % interval"
    yield from _MEANT
    if crossing.kind == "from":
        yield f"it pays {_place(crossing)}"
    if any(not dot.measured for dot in dots):
        yield "△ your network, read off the curve, not measured"
    if any(dot.measured for dot in dots):
        yield "▲ your model, measured, at the width with as much arithmetic"
    yield from guess(finding).caption
    yield canvas.origin(finding)


def _place(crossing: Crossing) -> str:
    ends = (crossing.width, crossing.low, crossing.high)
    width, low, high = (units.significant(end, 2) for end in ends)
    if not units.is_known(crossing.low, crossing.high):
        return f"from width {high} on at the latest"
    return f"from about width {width} on ({low} to {high})"


def _crossover_in_words(
    finding: Finding, result: Result, crossing: Crossing
) -> Iterator[str]:
    for point in result.points:
        yield f"{point.size.name}, batch {point.size.batch:,}: {brief(point.gain)}"
    for dot in result.dots:
        where = f"like width {units.significant(dot.width)}"
        yield f"{plain(dot.name, 60)}, {where}: {units.ratio(dot.gain.value)}"
    yield {
        "from": f"It pays {_place(crossing)}",
        "always": "It pays at every width",
        "never": "It never pays within what was tried",
        "mixed": "It pays at some widths and not at larger ones",
        "open": "Noise hides from where on it pays",
    }[crossing.kind]
    yield f"Measured on {canvas.origin(finding)}"


KINDS: dict[str, Kind[Finding]] = {
    "crossover": Kind(
        crossover,
        "From which size on the second device pays",
        lambda f: _result(f).curve is not None,
        leads=True,
    ),
}
