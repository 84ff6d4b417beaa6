"""The charts that only findings about batch sizes have."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import curves
from perfkit.charts.canvas import BLUE, GREEN, INK, Figure, Kind
from perfkit.charts.curves import Mark
from perfkit.findings.record import Finding
from perfkit.questions import result_of
from perfkit.questions.shared.batches import Costs
from perfkit.questions.shared.verdicts import between

if TYPE_CHECKING:
    from perfkit.questions.batch_size import Result


def batch_sizes(finding: Finding) -> Figure:
    """Draw the rate of every batch size, with the knee."""
    result: Result = result_of(finding)
    rates = {size: (t.rate, t.low, t.high) for size, t in result.rates}
    green, place = 0, "too noisy to say which size is large enough"
    if result.knee and result.knee.firm:
        green = result.knee.size
        rising, last = result.knee.rising, "the largest size tried"
        knee = last if rising else "the smallest size not shown to be slower"
        place = f"{'still rising' if rising else 'enough'}: {green:,}"

    def behind(axes: Axes) -> None:
        middles = [rate for rate, *_ in rates.values()]
        axes.plot(list(rates), middles, color=BLUE, lw=1.2, alpha=0.5)
        if green:
            curves.upright(axes, green, place)

    return curves.over_sizes(
        finding,
        "which batch is large enough",
        "examples per second",
        _marks(rates, green),
        units.significant,
        [f"◆ {place}, {knee}" if green else place],
        behind,
    )


def step_costs(finding: Finding) -> Figure:
    """Draw the time of a step at each batch size, and overhead and cost apart."""
    result: Result = result_of(finding)
    line, caption = result.line, ["a line needs three sizes"]
    if line:
        overhead, cost = (between(part, units.seconds) for part in line.each)
        shows_overhead = line.each[0].low > 0
        height = f"an overhead of {overhead}" if shows_overhead else "no overhead"
        caption = [f"line: {height}, and {cost} for each example"]
    seconds = ((size, timing.seconds(size)) for size, timing in result.rates)
    steps = {size: (step.value, step.low, step.high) for size, step in seconds}

    def behind(axes: Axes) -> None:
        if line:
            _draw_line(axes, line)

    return curves.over_sizes(
        finding,
        "what a step costs",
        "seconds of a step",
        _marks(steps),
        units.seconds,
        caption,
        behind,
    )


def _marks(
    values: Mapping[int, tuple[float, float, float]], green: int = 0
) -> list[Mark]:
    """Values by size, each with its interval; one size may be marked in green."""
    return [
        Mark(
            size,
            value,
            (low, high),
            GREEN if size == green else BLUE,
            "D" if size == green else "o",
        )
        for size, (value, low, high) in values.items()
    ]


def _draw_line(axes: Axes, line: Costs) -> None:
    overhead, cost = line.each
    x = np.geomspace(*axes.get_xlim(), 60)
    y = overhead.value + x * cost.value
    bottom, top = axes.get_ylim()
    inside = (y >= bottom) & (y <= top)
    axes.plot(x[inside], y[inside], color=INK, lw=1.4, alpha=0.8)
    if overhead.low > 0:
        words = f"overhead {units.seconds(overhead.value)}"
        curves.level(axes, overhead.value, words)
    if inside.any():
        end = float(x[inside][-1]), float(y[inside][-1])
        curves.label(axes, f"+ {units.seconds(cost.value)} each", *end)


def _has_sizes(finding: Finding) -> bool:
    return bool(result_of(finding).rates)


KINDS: dict[str, Kind] = {
    "batches": Kind(batch_sizes, "Which batch is large enough", _has_sizes, leads=True),
    "steps": Kind(step_costs, "What a step costs", _has_sizes),
}
