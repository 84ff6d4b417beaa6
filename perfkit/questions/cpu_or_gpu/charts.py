"""The chart of where a second device pays."""

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, Figure, Kind
from perfkit.charts.curves import Mark
from perfkit.findings.record import Finding
from perfkit.questions import result_of
from perfkit.questions.cpu_or_gpu import PAYS, Crossing, Curve, Result

_LOOKS = {"pays": (GREEN, "D"), "does not": (BLUE, "o"), "open": (GREY, "s")}
_LEGEND = (
    "blue band: 95 % interval",
    "◆ pays: at least a tenth faster, for sure",
    "● does not",
    "■ noise hides it",
)
_OUTCOMES = {
    "always": "It pays at every width",
    "never": "It never pays within what was tried",
    "mixed": "It pays at some widths and not at larger ones",
    "open": "Noise hides where it begins to pay",
}


def crossover(finding: Finding) -> Figure:
    """Draw what the second device gains over the width, and where it begins to pay."""
    result: Result = result_of(finding)
    curve, crossing = result.curve, result.crossing
    topic = "what all cores gain over one core"
    if result.devices[1] == "GPU":
        topic = "what the GPU gains over the CPU"
    marks = [
        Mark(
            point.size.width,
            point.gain.ratio,
            (point.gain.low, point.gain.high),
            *_LOOKS[point.says],
            words=f"batch {point.size.batch:,}" if point in result.off_curve else "",
            hollow=point in result.off_curve,
        )
        for point in result.points
    ]

    def behind(axes: Axes) -> None:
        if curve:
            _draw_curve(axes, curve, crossing)

    caption = [*_LEGEND, _OUTCOMES.get(crossing.kind) or f"It pays {crossing.place}"]
    return curves.over_sizes(
        finding,
        topic,
        "times the examples per second",
        marks if curve else [],
        units.ratio,
        caption,
        behind,
        sizes=[point.size.width for point in result.points],
        values=[1.0, PAYS],
        below=f"width of the network, batch {curve.batch:,}" if curve else "",
    )


def _draw_curve(axes: Axes, curve: Curve, crossing: Crossing) -> None:
    gain, low, high = curve.gains
    axes.fill_between(curve.widths, low, high, color=BLUE, alpha=0.15, lw=0)
    axes.plot(curve.widths, gain, color=BLUE, lw=1.6)
    axes.axhline(1.0, color=INK, lw=1, alpha=0.6)
    curves.level(axes, PAYS, "pays")
    if crossing.kind == "from" and crossing.low:
        axes.axvspan(crossing.low, crossing.high, color=GREEN, alpha=0.15)
        words = f"from {units.significant(crossing.width, 2)}"
        curves.upright(axes, crossing.width, words, colour=GREEN)


KINDS: dict[str, Kind] = {
    "crossover": Kind(
        crossover,
        "From which size on the second device pays",
        lambda f: result_of(f).curve is not None,
        leads=True,
    )
}
