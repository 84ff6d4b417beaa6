"""The charts that only findings about batch sizes have."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, RED, Figure, Kind
from perfkit.charts.curves import Mark
from perfkit.charts.layout import log_ticks
from perfkit.findings.record import Finding
from perfkit.questions import result_of
from perfkit.questions.batch_size import DOWNWARDS, UPWARDS, Result
from perfkit.questions.shared.costs import Costs
from perfkit.questions.shared.words import between

_LOOPS = {UPWARDS: "x", DOWNWARDS: "+"}


def batch_sizes(finding: Finding) -> Figure:
    """Draw the rate of every batch size, with the knee and the usual loop's answer."""
    result: Result = result_of(finding)
    rates = {size: (t.rate, t.low, t.high) for size, t in result.rates}
    loops = {name: pairs for name, pairs in result.loops.items() if pairs and rates}
    green, place = 0, "too noisy to say which size is large enough"
    if result.knee and result.knee.firm:
        green = result.knee.size
        place = f"{'still rising' if result.knee.rising else 'enough'}: {green:,}"
    looped = [
        Mark(*pair, None, GREY, _LOOPS[name], name if pair == pairs[-1] else "")
        for name, pairs in loops.items()
        for pair in pairs
    ]

    def behind(axes: Axes) -> None:
        for pairs in loops.values():
            axes.plot(*zip(*pairs, strict=True), ":", lw=1.4, color=GREY)
        middles = [rate for rate, *_ in rates.values()]
        axes.plot(list(rates), middles, color=BLUE, lw=1.2, alpha=0.5)
        if green:
            curves.upright(axes, green, place)

    knee = f"◆ {place}, the smallest size not shown to be slower than the best"
    caption = [knee if green else place]
    if loops:
        caption.append("dotted: the loop in circulation, one network through all sizes")
    return curves.over_sizes(
        finding,
        "which batch is large enough",
        "examples per second",
        [*looped, *_marks(rates, green)],
        units.significant,
        caption,
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


# Told apart by their dashes as well.
_LOOKS = ((BLUE, "-"), (GREEN, (0, (5, 2))), (RED, (0, (1, 1.5))), (GREY, (0, (4, 2))))
_MIDDLE = 400


def learning(finding: Finding) -> Figure:
    """Draw how the loss fell at several batch sizes, by examples and by seconds."""
    title = f"{finding.experiment}: speed is not learning"
    result: Result = result_of(finding)
    courses = result.trainings[: len(_LOOKS)]
    if not courses:
        return canvas.message(title, "No training was run to learn.")
    held_out = "loss on held-out examples; one training at each batch size"
    otherwise = "a batch size changes the training itself: fewer, larger steps"
    lines = canvas.caption_lines([held_out, otherwise])

    def draw(drawing: Drawing) -> None:
        gap = canvas.WIDTH - _MIDDLE
        by_samples = curves.axes(drawing, "loss", left=60, right=gap + 20)
        by_seconds = curves.axes(drawing, "", left=_MIDDLE + 20, right=120)
        for curve, (colour, dashes) in zip(courses, _LOOKS, strict=False):
            style: Any = {"color": colour, "ls": dashes, "lw": 1.8}
            by_samples.plot(curve.samples[1:], curve.losses[1:], **style)
            by_seconds.plot(curve.seconds, curve.losses, **style)
        low = min(curve.samples[1] for curve in courses) / 1.1
        high = max(curve.samples[-1] for curve in courses) * 1.1
        by_samples.set(xscale="log", xlim=(low, high))
        by_samples.set_xlabel("examples learnt from (logarithmic)")
        curves.put(by_samples, log_ticks(low, high), units.significant)
        seconds = max(curve.seconds[-1] for curve in courses)
        curves.along(by_seconds, seconds, units.significant, "seconds of training")
        worst = max(loss for curve in courses for loss in curve.losses)
        for axes in (by_samples, by_seconds):
            curves.even(axes, max(worst, 1e-6), units.significant)
        names = [f"batch {curve.batch:,}" for curve in courses]
        curves.key(by_seconds, names, _LOOKS, (1.03, 1.13))

    words = [
        f"With {curve.batch:,} examples a batch the loss fell from "
        f"{units.significant(curve.losses[0])} to "
        f"{units.significant(curve.losses[-1])} in {units.seconds(curve.seconds[-1])}, "
        f"after {curve.samples[-1]:,} examples"
        for curve in courses
    ]
    alt = f"{'. '.join([title, *words])}."
    return canvas.paint(title, lines, curves.height(lines), alt, draw)


def _has_sizes(finding: Finding) -> bool:
    return bool(result_of(finding).rates)


KINDS: dict[str, Kind[Finding]] = {
    "batches": Kind(batch_sizes, "Which batch is large enough", _has_sizes, leads=True),
    "steps": Kind(step_costs, "What a step costs", _has_sizes),
    "memory": Kind(
        memory, "The memory of a batch", lambda f: bool(result_of(f).memory)
    ),
    "learning": Kind(
        learning, "Speed is not learning", lambda f: bool(result_of(f).trainings)
    ),
}
