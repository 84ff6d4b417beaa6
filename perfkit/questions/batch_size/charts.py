"""The charts that only findings about batch sizes have."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import curves
from perfkit.charts.canvas import BLUE, GREEN, INK, RED, Figure, Kind
from perfkit.charts.curves import Mark
from perfkit.findings.record import Finding
from perfkit.questions import result_of
from perfkit.questions.shared.costs import Costs
from perfkit.questions.shared.words import between

if TYPE_CHECKING:
    from perfkit.questions.batch_size import Result


def batch_sizes(finding: Finding) -> Figure:
    """Draw the rate of every batch size, with the knee."""
    result: Result = result_of(finding)
    rates = {size: (t.rate, t.low, t.high) for size, t in result.rates}
    green, place = 0, "too noisy to say which size is large enough"
    if result.knee and result.knee.firm:
        green = result.knee.size
        place = f"{'still rising' if result.knee.rising else 'enough'}: {green:,}"

    def behind(axes: Axes) -> None:
        middles = [rate for rate, *_ in rates.values()]
        axes.plot(list(rates), middles, color=BLUE, lw=1.2, alpha=0.5)
        if green:
            curves.upright(axes, green, place)

    knee = f"◆ {place}, the smallest size not shown to be slower than the best"
    return curves.over_sizes(
        finding,
        "which batch is large enough",
        "examples per second",
        _marks(rates, green),
        units.significant,
        [knee if green else place],
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


def memory(finding: Finding) -> Figure:
    """Draw the peak of memory at each batch size, and which batch was too large."""
    result: Result = result_of(finding)
    peaks, limit, forecast = dict(result.memory), result.limit, result.forecast
    search = result.search if peaks else None
    marks = [Mark(size, float(peak)) for size, peak in peaks.items()]
    caption = ["dot: measured at the peak, the median over trials"]
    edges: list[Mark] = []
    high: float = max(peaks.values(), default=0.0)
    if search and search.requested:
        high = search.requested
    if search and search.fits:
        edges.append(Mark(search.fits, high, None, GREEN, "^"))
        into = f" into the {units.size(limit)} that perfkit allows" if limit else ""
        request = ""
        if search.requested:
            request = f", it had asked for {units.size(search.requested)}"
        caption.append(f"▲ {search.fits:,} fit{into}{request}")
    if search and search.fails:
        edges.append(Mark(search.fails, high, None, RED, "x"))
        ended = "do not fit" if search.by_limit else "failed, reason unknown"
        caption.append(f"✕ {search.fails:,} {ended}")
    sizes = [mark.size for mark in (*marks, *edges)]
    x = np.geomspace(min(sizes, default=1), max(sizes, default=1), 60)
    y = x * forecast.activations + forecast.fixed if forecast else x[:0]
    if forecast:
        parts = "weights, gradients, optimizer and activations"
        caption.append(f"line: {parts}, from shapes, at most {units.size(y[-1])}")

    def behind(axes: Axes) -> None:
        if forecast:
            axes.plot(x, y, color=INK, lw=1.4, alpha=0.8)
            curves.label(axes, "forecast from shapes", x[-1], y[-1])
        if limit:
            curves.level(axes, limit, f"perfkit's limit {units.size(limit)}")
        for mark in edges:
            curves.upright(axes, mark.size, colour=mark.colour)

    return curves.over_sizes(
        finding,
        "the memory of a batch",
        "bytes above the start, at the peak",
        [*marks, *edges],
        units.size,
        caption,
        behind,
        values=[*map(float, y), float(limit)],
    )


def _has_sizes(finding: Finding) -> bool:
    return bool(result_of(finding).rates)


KINDS: dict[str, Kind[Finding]] = {
    "batches": Kind(batch_sizes, "Which batch is large enough", _has_sizes, leads=True),
    "steps": Kind(step_costs, "What a step costs", _has_sizes),
    "memory": Kind(
        memory, "The memory of a batch", lambda f: bool(result_of(f).memory)
    ),
}
