"""The charts that only findings about batch sizes have."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, RED, Figure, Kind
from perfkit.charts.curves import Mark
from perfkit.charts.layout import even_ticks, log_ticks
from perfkit.findings.record import Finding
from perfkit.findings.text import plain
from perfkit.questions import result_of
from perfkit.questions.batch_size import numbers
from perfkit.questions.batch_size.numbers import Line, Result
from perfkit.questions.shared.words import between

_LOOPS = {numbers.UPWARDS: "x", numbers.DOWNWARDS: "+"}


def _result(finding: Finding) -> Result:
    result: Result = result_of(finding)
    return result


def batch_sizes(finding: Finding) -> Figure:
    """Draw the rate of every batch size, with the knee and the usual loop's answer."""
    result = _result(finding)
    timed = {size.batch: size.timing for size in result.sizes}
    loops = {name: pairs for name, pairs in result.loops.items() if pairs}
    looped = [pair for pairs in loops.values() for pair in pairs]
    green, place = 0, "too noisy to say which size is large enough"
    if result.knee and result.knee.firm:
        green = result.knee.size
        place = f"{'still rising' if result.knee.rising else 'enough'}: {green:,}"
    marks = [
        Mark(
            size=size,
            value=timing.rate,
            ends=(timing.low, timing.high),
            colour=GREEN if size == green else BLUE,
            shape="D" if size == green else "o",
        )
        for size, timing in timed.items()
    ]

    def behind(axes: Axes) -> None:
        for name, pairs in loops.items():
            style: Any = {"ls": ":", "lw": 1.4, "color": GREY, "ms": 8, "mew": 1.8}
            axes.plot(*zip(*pairs, strict=True), _LOOPS[name], **style)
            curves.label(axes, name, *pairs[-1])
        rates = [timing.rate for timing in timed.values()]
        axes.plot(list(timed), rates, color=BLUE, lw=1.2, alpha=0.5)
        if green:
            curves.upright(axes, green, place)

    knee = "◆ the smallest size that is not shown to be slower than the best"
    caption = [knee if green else place]
    if loops:
        caption.append("dotted: the loop in circulation, one network through all sizes")
    words = [place.capitalize()]
    for name, pairs in loops.items():
        listed = ", ".join(f"{n:,} {units.significant(rate)}" for n, rate in pairs)
        words.append(f"{name.capitalize()} says: {listed}")
    return curves.over_sizes(
        finding,
        "which batch is large enough",
        "examples per second",
        marks,
        units.significant,
        caption=caption,
        words=words,
        behind=behind,
        sizes=[*timed, *(size for size, _ in looped)],
        values=[rate for _, rate in looped],
    )


def step_costs(finding: Finding) -> Figure:
    """Draw the time of a step at each batch size, and overhead and cost apart."""
    result = _result(finding)
    line, equation = result.line, "a line needs three sizes"
    if line:
        overhead, cost = (between(n, units.seconds) for n in (line.overhead, line.cost))
        equation = f"line: an overhead of {overhead}, and {cost} for each example"
        if not line.shows_overhead:
            equation = f"line: no overhead shown, and {cost} for each example"
    bends = dict(line.bends) if line else {}
    off = {size: f"{units.ratio(ratio)} the line" for size, ratio in bends.items()}
    marks = [
        Mark(
            size=size.batch,
            value=size.step.value,
            ends=(size.step.low, size.step.high),
            colour=RED if size.batch in off else BLUE,
            shape="s" if size.batch in off else "o",
            words=off.get(size.batch, ""),
        )
        for size in result.sizes
    ]
    legend = ["■ off the line by more than the interval allows"] if off else []

    def behind(axes: Axes) -> None:
        if line:
            _draw_line(axes, line)

    return curves.over_sizes(
        finding,
        "what a step costs",
        "seconds of a step",
        marks,
        units.seconds,
        caption=[equation, *legend],
        words=[equation.capitalize()],
        behind=behind,
    )


def _draw_line(axes: Axes, line: Line) -> None:
    x = np.geomspace(*axes.get_xlim(), 60)
    y = line.overhead.value + x * line.cost.value
    bottom, top = axes.get_ylim()
    inside = (y >= bottom) & (y <= top)
    axes.plot(x[inside], y[inside], color=INK, lw=1.4, alpha=0.8)
    if line.shows_overhead:
        words = f"overhead {units.seconds(line.overhead.value)}"
        curves.level(axes, line.overhead.value, words)
    if inside.any():
        end = float(x[inside][-1]), float(y[inside][-1])
        curves.label(axes, f"+ {units.seconds(line.cost.value)} each", *end)


_SIGNS = {"^": "▲", "x": "✕"}


def memory(finding: Finding) -> Figure:
    """Draw the peak of memory at each batch size, and which batch was too large."""
    result = _result(finding)
    peaks, limit, expected = dict(result.memory), result.limit, result.forecast
    search = result.search if peaks else None
    high: float = max(peaks.values(), default=0.0)
    if search and search.asked:
        high = search.asked
    edges: list[tuple[Mark, str]] = []
    if search and search.fits:
        mark = Mark(size=search.fits, value=high, colour=GREEN, shape="^")
        into = f" into the {units.size(limit)} that perfkit allows" if limit else ""
        asked = f", it had asked for {units.size(search.asked)}" if search.asked else ""
        edges.append((mark, f"{search.fits:,} fit{into}{asked}"))
    if search and search.fails:
        mark = Mark(size=search.fails, value=high, colour=RED, shape="x")
        ended = "do not fit" if search.by_limit else "failed, nobody knows why"
        edges.append((mark, f"{search.fails:,} {ended}"))
    marks = [Mark(size=size, value=float(peak)) for size, peak in peaks.items()]
    sizes = sorted({*peaks, *(int(mark.size) for mark, _ in edges)})
    forecast = {n: float(expected.total(n)) for n in sizes} if expected else {}
    legend = "line: weights, gradients, optimizer and activations, from shapes"

    def behind(axes: Axes) -> None:
        if expected:
            x = np.geomspace(sizes[0], sizes[-1], 60)
            y = expected.fixed + x * expected.activations
            axes.plot(x, y, color=INK, lw=1.4, alpha=0.8)
            last = sizes[-1], forecast[sizes[-1]]
            curves.label(axes, "forecast from shapes", *last)
        if limit:
            curves.level(axes, limit, f"perfkit's limit {units.size(limit)}")
        for mark, _ in edges:
            curves.upright(axes, mark.size, colour=mark.colour)

    return curves.over_sizes(
        finding,
        "the memory of a batch",
        "bytes above the start, at the peak",
        [*marks, *(mark for mark, _ in edges)],
        units.size,
        caption=[
            "dot: measured at the peak, the median over trials",
            *([legend] if expected else []),
            *(f"{_SIGNS[mark.shape]} {text}" for mark, text in edges),
        ],
        words=[
            *(f"Forecast at {n:,}: {units.size(y)}" for n, y in forecast.items()),
            *(text for _, text in edges),
        ],
        behind=behind,
        values=[*forecast.values(), *([limit] if limit else [])],
    )


# Told apart by their dashes as well.
_LOOKS = ((BLUE, "-"), (GREEN, (0, (5, 2))), (RED, (0, (1, 1.5))), (GREY, (0, (4, 2))))
_MIDDLE = 400


def learning(finding: Finding) -> Figure:
    """Draw how the loss fell at several batch sizes, by examples and by seconds."""
    title = f"{plain(finding.experiment, 40)}: speed is not learning"
    courses = _result(finding).trainings[: len(_LOOKS)]
    if not courses:
        return canvas.message(title, "No training was run to learn.")
    held_out = "loss of examples that were held out; one training at each batch size"
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
        end = max(curve.seconds[-1] for curve in courses)
        by_samples.set(xscale="log", xlim=(low, high))
        by_samples.set_xlabel("examples learnt from (logarithmic)")
        by_seconds.set(xlim=(0, end), xlabel="seconds of training")
        panels = (by_samples, log_ticks(low, high)), (by_seconds, even_ticks(0, end))
        worst = max(loss for curve in courses for loss in curve.losses)
        for axes, ticks in panels:
            # Half of the picture has room for half of the numbers.
            curves.put(axes, ticks[:: 1 + len(ticks) // 5], units.significant)
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
    return bool(_result(finding).sizes)


KINDS: dict[str, Kind[Finding]] = {
    "batches": Kind(batch_sizes, "Which batch is large enough", _has_sizes, leads=True),
    "steps": Kind(step_costs, "What a step costs", _has_sizes),
    "memory": Kind(memory, "The memory of a batch", lambda f: bool(_result(f).memory)),
    "learning": Kind(
        learning, "Speed is not learning", lambda f: bool(_result(f).trainings)
    ),
}
