"""The chart of what several devices bring."""

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, INK, Figure, Kind
from perfkit.experiments.scaling.verdict import SHARED, result
from perfkit.experiments.scaling.work import GPU
from perfkit.experiments.shared.words import between
from perfkit.findings.record import Finding
from perfkit.findings.standing import guess, measurement
from perfkit.findings.text import plain


def scaling(finding: Finding) -> Figure:
    """Draw the rate over the number of devices, with the ideal line."""
    reached = result(measurement(finding))
    kind, one, several = reached.kind, reached.one, reached.several
    title = f"{plain(finding.experiment, 40)}: what several {kind}s bring"
    if one is None or not several:
        return canvas.message(title, f"Fewer than two numbers of {kind}s were timed.")
    timings = {1: one} | {point.count: point.timing for point in several}
    most = several[-1].count

    def fill(axes: Axes) -> None:
        room = 0.14 * (most - 1)
        axes.set_xlim(1 - room, most + room)
        # The largest number comes first, because it must be readable.
        curves.put(axes, [float(n) for n in reversed(timings)], "{:.0f}".format)
        axes.set_xlabel(f"number of {kind}s")
        rates = [timing.rate for timing in timings.values()]
        curves.even(axes, max(most * one.rate, *rates), units.significant)
        axes.plot([1, most], [one.rate, most * one.rate], "--", color=INK, lw=1)
        curves.label(axes, "ideal", most, most * one.rate)
        axes.plot(list(timings), rates, "o-", color=BLUE, lw=1.2, ms=7)
        for count, timing in timings.items():
            curves.between(axes, count, timing.low, timing.high, BLUE)
        for point in several:
            share = units.percent(point.efficiency.value)
            curves.label(axes, share, point.count, point.timing.rate, colour=BLUE)

    words = [
        f"{t.variant}: {units.rate_between(t.rate, t.low, t.high)}"
        for t in timings.values()
    ]
    for point in several:
        share = between(point.efficiency, units.percent)
        words.append(f"Efficiency of {point.timing.variant}: {share}")
    caption = ["bar: 95 % interval", "%: efficiency, the share of the ideal rate"]
    caption += ["dashed: n times the rate of one", *guess(finding).caption]
    common = [] if kind == GPU else [SHARED.rstrip(".")]
    common.append(canvas.origin(finding))
    caption, words = caption + common, words + common
    return curves.picture(title, "examples per second", caption, words, fill)


KINDS: dict[str, Kind[Finding]] = {
    "scaling": Kind(
        scaling,
        "What several devices bring",
        lambda finding: bool(result(measurement(finding)).several),
        leads=True,
    )
}
