"""The charts that only findings about batch sizes have."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, RED, Figure, Kind
from perfkit.charts.layout import even_ticks, log_ticks
from perfkit.engine.statistics import Timing
from perfkit.findings.record import Finding
from perfkit.findings.standing import guess, measurement
from perfkit.findings.text import plain
from perfkit.questions.batch_size import numbers
from perfkit.questions.batch_size.numbers import Knee, Line, SearchResult
from perfkit.questions.shared.words import between

_LOOPS = (
    (numbers.UPWARDS, "x", "upwards"),
    (numbers.DOWNWARDS, "+", "backwards"),
)


def _title(finding: Finding, topic: str) -> str:
    return f"{plain(finding.experiment, 40)}: {topic}"


def batch_sizes(finding: Finding) -> Figure:
    """Draw the rate of every batch size, with the knee and the usual loop's answer."""
    title = _title(finding, "which batch is large enough")
    timings = numbers.sized(finding.timings)
    knee = numbers.knee(measurement(finding)) if timings else None
    if knee is None:
        return canvas.message(title, "No batch size has a rate.")
    loops = {
        name: dict(sorted(rates.items()))
        for name, *_ in _LOOPS
        if (rates := numbers.usual_loop(finding.trials, name))
    }

    def fill(axes: Axes) -> None:
        pairs = [pair for loop in loops.values() for pair in loop.items()]
        rates = [*(rate for _, rate in pairs), *(t.rate for t in timings.values())]
        ends = [end for t in timings.values() for end in (t.low, t.high)]
        curves.sizes(axes, [*timings, *(size for size, _ in pairs)])
        curves.measure(axes, rates, ends, units.significant)
        for name, mark, direction in _LOOPS:
            if loop := loops.get(name):
                x, y = list(loop), list(loop.values())
                axes.plot(x, y, mark, ls=":", lw=1.4, color=GREY, ms=8, mew=1.8)
                curves.label(axes, f"usual loop, {direction}", x[-1], y[-1])
        _draw_sizes(axes, timings, knee)

    legend = place = "too noisy to say which size is large enough"
    if knee.firm:
        legend = "◆ the smallest size that is not shown to be slower than the best"
        place = _place(knee)
    caption = ["bar: 95 % interval", legend, *guess(finding).caption]
    ends = {n: units.rate_between(t.rate, t.low, t.high) for n, t in timings.items()}
    words = [f"{size:,} examples a batch: {rate}" for size, rate in ends.items()]
    words.append(place.capitalize())
    if loops:
        caption.append("dotted: the loop in circulation, one network through all sizes")
    for name, loop in loops.items():
        listed = ", ".join(f"{n:,} {units.significant(r)}" for n, r in loop.items())
        words.append(f"{name[:1].upper()}{name[1:]} says: {listed}")
    label = "examples per second (logarithmic)"
    return curves.picture(title, label, caption, words, fill)


def _draw_sizes(axes: Axes, timings: dict[int, Timing], knee: Knee) -> None:
    rates = [timing.rate for timing in timings.values()]
    axes.plot(list(timings), rates, color=BLUE, lw=1.2, alpha=0.5)
    for size, timing in timings.items():
        is_knee = size == knee.size and knee.firm
        colour, mark = (GREEN, "D") if is_knee else (BLUE, "o")
        curves.between(axes, size, timing.low, timing.high, colour)
        axes.plot(size, timing.rate, mark, color=colour, ms=9 if is_knee else 7)
    if knee.firm:
        axes.axvline(knee.size, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.6)
        curves.label(axes, _place(knee), knee.size, axes.get_ylim()[0] * 1.2)


def _place(knee: Knee) -> str:
    return f"{'still rising' if knee.rising else 'enough'}: {knee.size:,}"


def step_costs(finding: Finding) -> Figure:
    """Draw the time of a step at each batch size, and overhead and cost apart."""
    title = _title(finding, "what a step costs")
    steps = numbers.step_times(finding.timings)
    if not steps:
        return canvas.message(title, "No batch size has a rate.")
    line = numbers.line(steps, finding.noise_floor)
    off = dict(line.bends) if line else {}

    def fill(axes: Axes) -> None:
        curves.sizes(axes, [*steps])
        ends = [end for step in steps.values() for end in (step.low, step.high)]
        curves.measure(axes, [s.value for s in steps.values()], ends, units.seconds)
        if line:
            _draw_line(axes, line)
        for size, step in steps.items():
            colour, mark = (RED, "s") if size in off else (BLUE, "o")
            curves.between(axes, size, step.low, step.high, colour)
            axes.plot(size, step.value, mark, color=colour, ms=7)
            if size in off:
                words = f"{units.ratio(off[size])} the line"
                curves.label(axes, words, size, step.value)

    equation = _equation(line) if line else "a line needs three sizes"
    caption = ["bar: 95 % interval", f"line: {equation}" if line else equation]
    caption += ["■ off the line by more than the interval allows"] if off else []
    words = [f"{n:,} examples: {units.seconds(s.value)}" for n, s in steps.items()]
    words += [f"Fitted: {equation}"] if line else []
    words += [f"Off the line: {n:,}, {units.ratio(x)} of it" for n, x in off.items()]
    label = "seconds of a step (logarithmic)"
    return curves.picture(title, label, caption, words, fill)


def _draw_line(axes: Axes, line: Line) -> None:
    low, high = axes.get_xlim()
    x = np.geomspace(low, high, 60)
    y = line.overhead.value + x * line.cost.value
    bottom, top = axes.get_ylim()
    inside = (y >= bottom) & (y <= top)
    axes.plot(x[inside], y[inside], color=INK, lw=1.4, alpha=0.8)
    if line.shows_overhead and bottom <= line.overhead.value <= top:
        axes.axhline(line.overhead.value, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.6)
        words = f"overhead {units.seconds(line.overhead.value)}"
        curves.label(axes, words, high, line.overhead.value)
    if inside.any():
        end = float(x[inside][-1]), float(y[inside][-1])
        curves.label(axes, f"+ {units.seconds(line.cost.value)} each", *end)


def _equation(line: Line) -> str:
    overhead, cost = (
        between(part, units.seconds) for part in (line.overhead, line.cost)
    )
    if not line.shows_overhead:
        return f"no overhead shown ({overhead}), and {cost} for each example"
    return f"an overhead of {overhead}, and {cost} for each example"


_MB, _MOST_MB = 10**6, 10**9
_NOT_TRIED = SearchResult(fits=0, fails=None, reason="", tries=0, by_limit=False)


def memory(finding: Finding) -> Figure:
    """Draw the peak of memory at each batch size, and which batch was too large."""
    title = _title(finding, "the memory of a batch")
    peaks = measured(finding)
    if not peaks:
        return canvas.message(title, "No trial told how much memory it took.")
    expected = numbers.forecast(finding.notes)
    result = numbers.read_search(finding.trials) or _NOT_TRIED
    request, limit = numbers.asked_for(finding.trials, result.fits), _limit(finding)

    def fill(axes: Axes) -> None:
        sizes = sorted({*peaks, *filter(None, (result.fits, result.fails))})
        curves.sizes(axes, sizes)
        forecast = [float(expected.total(size)) for size in sizes] if expected else []
        values = [*peaks.values(), *filter(None, (*forecast, request, limit))]
        curves.measure(axes, values, [], units.size)
        # All of it is above 0, or none: what a network holds cannot be negative.
        if expected and forecast[0]:
            x = np.geomspace(sizes[0], sizes[-1], 60)
            y = expected.fixed + x * expected.activations
            axes.plot(x, y, color=INK, lw=1.4, alpha=0.8)
            curves.label(axes, "forecast from shapes", sizes[-1], forecast[-1])
        axes.plot(list(peaks), list(peaks.values()), "o", color=BLUE, ms=7)
        if limit:
            axes.axhline(limit, color=INK, lw=1.2, ls=(0, (6, 3)), alpha=0.8)
            words = f"perfkit's limit {units.size(limit)}"
            curves.label(axes, words, axes.get_xlim()[1], limit)
        top = axes.get_ylim()[1] / 1.1
        if result.fits:
            axes.axvline(result.fits, color=GREEN, lw=1.4, ls=(0, (4, 3)))
            axes.plot(result.fits, request or top, "^", color=GREEN, ms=8)
        if result.fails:
            axes.axvline(result.fails, color=RED, lw=1.4, ls=(0, (1, 2)))
            axes.plot(result.fails, top, "x", color=RED, ms=8, mew=2)

    caption = ["dot: measured at the peak, the median over trials"]
    words = [f"{n:,} examples a batch: {units.size(peaks[n])}" for n in peaks]
    if expected:
        parts = "weights, gradients, optimizer and activations"
        caption.append(f"line: {parts}, from shapes")
        shapes = [f", forecast {units.size(expected.total(size))}" for size in peaks]
        words = [f"{text}{shape}" for text, shape in zip(words, shapes, strict=True)]
    if result.fits:
        words.append(f"{result.fits:,} fit")
        into = f" into the {units.size(limit)} that perfkit allows" if limit else ""
        size = f", it had asked for {units.size(request)}" if request else ""
        caption.append(f"▲ dashed: {words[-1]}{into}{size}")
    if result.fails:
        ended = "do not fit" if result.by_limit else "failed, nobody knows why"
        words.append(f"{result.fails:,} {ended}")
        caption.append(f"✕ dotted: {words[-1]}")
    label = "bytes above the start, at the peak (logarithmic)"
    return curves.picture(title, label, caption, words, fill)


def measured(finding: Finding) -> dict[int, float]:
    """Bytes at the peak: of the GPU where there is one, else of the process."""
    for kind in ("gpu_peak", "resident"):
        medians = numbers.memory(finding.trials, kind)
        if above := {size: peak for size, peak in medians.items() if peak > 0}:
            return above
    return {}


def _limit(finding: Finding) -> int:
    """Bytes above the start that a try may ask for; 0 where the device decides."""
    limit = finding.parameters.get("memory")
    if type(limit) is not int or not 0 < limit < _MOST_MB or finding.notes.get("gpus"):
        return 0
    return limit * _MB


# Told apart by their dashes as well.
_LOOKS = ((BLUE, "-"), (GREEN, (0, (5, 2))), (RED, (0, (1, 1.5))), (GREY, (0, (4, 2))))
_MIDDLE = 400


def learning(finding: Finding) -> Figure:
    """Draw how the loss fell at several batch sizes, by examples and by seconds."""
    title = _title(finding, "speed is not learning")
    courses = numbers.curves(finding.trials)[: len(_LOOKS)]
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
    return bool(numbers.sized(finding.timings))


KINDS: dict[str, Kind[Finding]] = {
    "batches": Kind(batch_sizes, "Which batch is large enough", _has_sizes, leads=True),
    "steps": Kind(step_costs, "What a step costs", _has_sizes),
    "memory": Kind(memory, "The memory of a batch", lambda f: bool(measured(f))),
    "learning": Kind(
        learning, "Speed is not learning", lambda f: bool(numbers.curves(f.trials))
    ),
}
