"""The chart of what several devices bring."""

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, INK, Figure, Kind
from perfkit.findings.record import Finding
from perfkit.findings.standing import guess
from perfkit.findings.text import one_line
from perfkit.questions import result_of
from perfkit.questions.scaling import GPU, SHARED, SpeedUps


def scaling(finding: Finding) -> Figure:
    """Draw the rate over the number of devices, with the ideal line."""
    result: SpeedUps = result_of(finding)
    title = f"{one_line(finding.experiment, 40)}: what several {result.kind}s bring"
    if not result.gains:
        words = f"Fewer than two numbers of {result.kind}s were timed."
        return canvas.message(title, words)
    timings = {int(count): timing for count, timing in result.timings.items()}
    gains = {int(count): gain for count, gain in result.gains.items()}
    rates, largest = [timing.rate for timing in timings.values()], max(timings)
    ideal = largest * rates[0]

    def fill(axes: Axes) -> None:
        room = 0.14 * (largest - 1)
        axes.set_xlim(1 - room, largest + room)
        # The largest number comes first, because it must be readable.
        curves.put(axes, [float(n) for n in reversed(timings)], "{:.0f}".format)
        axes.set_xlabel(f"number of {result.kind}s")
        curves.even(axes, max(ideal, *rates), units.significant)
        axes.plot([1, largest], [rates[0], ideal], "--", color=INK, lw=1)
        curves.label(axes, "ideal", largest, ideal)
        axes.plot(list(timings), rates, "o-", color=BLUE, lw=1.2, ms=7)
        for count, timing in timings.items():
            curves.between(axes, count, timing.low, timing.high, BLUE)
        for count, gain in gains.items():
            share = units.percent(gain.ratio / count)
            curves.label(axes, share, count, timings[count].rate, colour=BLUE)

    rows = [
        f"{t.variant}: {units.rate_between(t.rate, t.low, t.high)}"
        for t in timings.values()
    ]
    for count, gain in gains.items():
        value, low, high = (end / count for end in (gain.ratio, gain.low, gain.high))
        share = units.between(value, low, high, units.percent)
        rows.append(f"Efficiency of {gain.variant}: {share}")
    caption = ["bar: 95 % interval", "%: efficiency, the share of the ideal rate"]
    caption += ["dashed: n times the rate of one", *guess(finding).caption]
    common = [canvas.origin(finding)]
    if result.kind != GPU:
        common.insert(0, SHARED.rstrip("."))
    quantity = "examples per second"
    return curves.picture(title, quantity, caption + common, rows + common, fill)


KINDS: dict[str, Kind[Finding]] = {
    "scaling": Kind(
        scaling,
        "What several devices bring",
        lambda finding: bool(result_of(finding).gains),
        leads=True,
    )
}
