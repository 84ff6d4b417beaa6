"""The charts that only findings about batch sizes have."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, RED, Figure, Kind
from perfkit.charts.layout import even_ticks, log_ticks
from perfkit.experiments.batch_size import numbers
from perfkit.experiments.batch_size.numbers import Curve, Found, Knee, Line
from perfkit.experiments.shared.batches import Forecast
from perfkit.experiments.shared.words import between
from perfkit.findings.record import Finding
from perfkit.findings.standing import guess, measurement
from perfkit.findings.text import plain
from perfkit.measure.statistics import Timing

_LOOPS = (
    (numbers.UPWARDS, "x", "upwards"),
    (numbers.DOWNWARDS, "+", "backwards"),
)


def _title(finding: Finding, what: str) -> str:
    return f"{plain(finding.experiment, 40)}: {what}"


def batch_sizes(finding: Finding) -> Figure:
    """Draw the rate of every batch size, with the knee and the usual loop's answer."""
    title = _title(finding, "which batch is large enough")
    known = numbers.sized(finding.timings)
    knee = numbers.knee(measurement(finding)) if known else None
    if knee is None:
        return canvas.message(title, "No batch size has a rate.")
    loops = {
        name: dict(sorted(rates.items()))
        for name, *_ in _LOOPS
        if (rates := numbers.usual_loop(finding.trials, name))
    }

    def fill(axes: Axes) -> None:
        pairs = [pair for of in loops.values() for pair in of.items()]
        rates = [*(rate for _, rate in pairs), *(t.rate for t in known.values())]
        ends = [end for t in known.values() for end in (t.low, t.high)]
        curves.sizes(axes, [*known, *(size for size, _ in pairs)])
        curves.measure(axes, rates, ends, units.significant)
        for name, mark, how in _LOOPS:
            if of := loops.get(name):
                x, y = list(of), list(of.values())
                axes.plot(x, y, mark, ls=":", lw=1.4, color=GREY, ms=8, mew=1.8)
                curves.label(axes, f"usual loop, {how}", x[-1], y[-1])
        _draw_sizes(axes, known, knee)

    noisy = "too noisy to say which size is large enough"
    caption = ["bar: 95 % interval", noisy, *guess(finding).caption]
    if knee.firm:
        caption[1] = "◆ the smallest size that is not shown to be slower than the best"
    if loops:
        caption.append("dotted: the loop in circulation, one network through all sizes")
    words = _rates_in_words(known, knee, loops)
    what = "examples per second (logarithmic)"
    return curves.picture(title, what, caption, words, fill)


def _draw_sizes(axes: Axes, known: dict[int, Timing], knee: Knee) -> None:
    rates = [timing.rate for timing in known.values()]
    axes.plot(list(known), rates, color=BLUE, lw=1.2, alpha=0.5)
    for size, timing in known.items():
        chosen = size == knee.size and knee.firm
        colour, mark = (GREEN, "D") if chosen else (BLUE, "o")
        curves.between(axes, size, timing.low, timing.high, colour)
        axes.plot(size, timing.rate, mark, color=colour, ms=9 if chosen else 7)
    if knee.firm:
        axes.axvline(knee.size, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.6)
        curves.label(axes, _place(knee), knee.size, axes.get_ylim()[0] * 1.2)


def _place(knee: Knee) -> str:
    return f"{'still rising' if knee.rising else 'enough'}: {knee.size:,}"


def _rates_in_words(
    known: dict[int, Timing], knee: Knee, loops: dict[str, dict[int, float]]
) -> Iterator[str]:
    for size, t in known.items():
        yield f"{size:,} examples a batch: {units.rate_between(t.rate, t.low, t.high)}"
    if knee.firm:
        yield _place(knee).capitalize()
    else:
        yield "Too noisy to say which size is large enough"
    for name, rates in loops.items():
        listed = ", ".join(f"{s:,} {units.significant(r)}" for s, r in rates.items())
        yield f"{name[:1].upper()}{name[1:]} says: {listed}"


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

    caption = ["bar: 95 % interval", "a line needs three sizes"]
    said = [f"{n:,} examples: {units.seconds(s.value)}" for n, s in steps.items()]
    if line:
        caption[1] = f"line: {_equation(line)}"
        said.append(f"Fitted: {_equation(line)}")
        said += [f"Off the line: {n:,}, {units.ratio(x)} of it" for n, x in off.items()]
    if off:
        caption.append("■ off the line by more than the interval allows")
    return curves.picture(title, "seconds of a step (logarithmic)", caption, said, fill)


def _draw_line(axes: Axes, line: Line) -> None:
    low, high = axes.get_xlim()
    x = np.geomspace(low, high, 60)
    y = line.overhead.value + x * line.cost.value
    bottom, top = axes.get_ylim()
    seen = (y >= bottom) & (y <= top)
    axes.plot(x[seen], y[seen], color=INK, lw=1.4, alpha=0.8)
    if line.shows_overhead and bottom <= line.overhead.value <= top:
        axes.axhline(line.overhead.value, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.6)
        words = f"overhead {units.seconds(line.overhead.value)}"
        curves.label(axes, words, high, line.overhead.value)
    if seen.any():
        end = float(x[seen][-1]), float(y[seen][-1])
        curves.label(axes, f"+ {units.seconds(line.cost.value)} each", *end)


def _equation(line: Line) -> str:
    overhead, cost = (
        between(part, units.seconds) for part in (line.overhead, line.cost)
    )
    if not line.shows_overhead:
        return f"no overhead shown ({overhead}), and {cost} for each example"
    return f"an overhead of {overhead}, and {cost} for each example"


_MB, _MOST_MB = 10**6, 10**9
_NOT_TRIED = numbers.Found(fits=0, fails=None, how="", asked=0, by_limit=False)


def memory(finding: Finding) -> Figure:
    """Draw the peak of memory at each batch size, and which batch was too large."""
    title = _title(finding, "the memory of a batch")
    held = measured(finding)
    if not held:
        return canvas.message(title, "No trial told how much memory it took.")
    expected = numbers.forecast(finding.notes)
    found = numbers.found(finding.trials) or _NOT_TRIED
    asked, limit = numbers.asked_for(finding.trials, found.fits), _limit(finding)

    def fill(axes: Axes) -> None:
        sizes = sorted({*held, *filter(None, (found.fits, found.fails))})
        curves.sizes(axes, sizes)
        forecast = [float(expected.of(size)) for size in sizes] if expected else []
        seen = [*held.values(), *filter(None, (*forecast, asked, limit))]
        curves.measure(axes, seen, [], units.size)
        if expected:
            x = np.geomspace(sizes[0], sizes[-1], 60)
            y = expected.fixed + x * expected.activations
            if (y > 0).all():
                axes.plot(x, y, color=INK, lw=1.4, alpha=0.8)
                words = "forecast from shapes"
                curves.label(axes, words, float(x[-1]), float(y[-1]))
        axes.plot(list(held), list(held.values()), "o", color=BLUE, ms=7)
        if limit:
            axes.axhline(limit, color=INK, lw=1.2, ls=(0, (6, 3)), alpha=0.8)
            words = f"perfkit's limit {units.size(limit)}"
            curves.label(axes, words, axes.get_xlim()[1], limit)
        top = axes.get_ylim()[1] / 1.1
        if found.fits:
            axes.axvline(found.fits, color=GREEN, lw=1.4, ls=(0, (4, 3)))
            axes.plot(found.fits, asked or top, "^", color=GREEN, ms=8)
        if found.fails:
            axes.axvline(found.fails, color=RED, lw=1.4, ls=(0, (1, 2)))
            axes.plot(found.fails, top, "x", color=RED, ms=8, mew=2)

    caption = ["dot: measured at the peak, the median over trials"]
    if expected:
        parts = "weights, gradients, optimizer and activations"
        caption.append(f"line: {parts}, from shapes")
    if found.fits:
        into = f" into the {units.size(limit)} that perfkit allows" if limit else ""
        size = f", it had asked for {units.size(asked)}" if asked else ""
        caption.append(f"▲ dashed: {found.fits:,} fit{into}{size}")
    if found.fails:
        caption.append(f"✕ dotted: {found.fails:,} {_not_fitting(found)}")
    what = "bytes above the start, at the peak (logarithmic)"
    words = _memory_in_words(held, expected, found)
    return curves.picture(title, what, caption, words, fill)


def measured(finding: Finding) -> dict[int, float]:
    """Bytes at the peak: of the GPU where there is one, else of the process."""
    for what in ("gpu_peak", "resident"):
        known = numbers.memory(finding.trials, what)
        if known := {size: bytes_ for size, bytes_ in known.items() if bytes_ > 0}:
            return known
    return {}


def _limit(finding: Finding) -> int:
    """Bytes above the start that a try may ask for; 0 where the device decides."""
    limit = finding.parameters.get("memory")
    if type(limit) is not int or not 0 < limit < _MOST_MB or finding.notes.get("gpus"):
        return 0
    return limit * _MB


def _memory_in_words(
    held: dict[int, float], expected: Forecast | None, found: Found
) -> Iterator[str]:
    for size, bytes_ in held.items():
        forecast = f", forecast {units.size(expected.of(size))}" if expected else ""
        yield f"{size:,} examples a batch: {units.size(bytes_)}{forecast}"
    if found.fits:
        yield f"{found.fits:,} fit"
    if found.fails:
        yield f"{found.fails:,} {_not_fitting(found)}"


def _not_fitting(found: Found) -> str:
    return "do not fit" if found.by_limit else "failed, nobody knows why"


# Told apart by their dashes as well.
_LOOKS = ((BLUE, "-"), (GREEN, (0, (5, 2))), (RED, (0, (1, 1.5))), (GREY, (0, (4, 2))))
_MIDDLE = 400
_LARGEST_LOSS = 1e6


def learning(finding: Finding) -> Figure:
    """Draw how the loss fell at several batch sizes, by examples and by seconds."""
    title = _title(finding, "speed is not learning")
    found = trainings(finding)
    if not found:
        return canvas.message(title, "No training was run to learn.")
    lines = canvas.caption_lines(
        [
            "loss of examples that were held out; one training at each batch size",
            "a batch size changes the training itself: fewer, larger steps",
        ]
    )

    def draw(drawing: Drawing) -> None:
        gap = canvas.WIDTH - _MIDDLE
        by_samples = curves.axes(drawing, "loss", left=60, right=gap + 20)
        by_seconds = curves.axes(drawing, "", left=_MIDDLE + 20, right=120)
        high = max(loss for curve in found for loss in curve.losses)
        for curve, (colour, dashes) in zip(found, _LOOKS, strict=False):
            style: Any = {"color": colour, "ls": dashes, "lw": 1.8}
            by_samples.plot(curve.samples[1:], curve.losses[1:], **style)
            by_seconds.plot(curve.seconds, curve.losses, **style)
        for axes in (by_samples, by_seconds):
            curves.even(axes, max(high, 1e-6), units.significant)
        _below(by_samples, by_seconds, found)
        names = [f"batch {curve.batch:,}" for curve in found]
        curves.key(by_seconds, names, _LOOKS, (1.03, 1.13))

    said = ". ".join(_learning_in_words(curve) for curve in found)
    return canvas.drawn(title, lines, curves.height(lines), f"{title}. {said}.", draw)


def trainings(finding: Finding) -> tuple[Curve, ...]:
    """The trainings that can be drawn, as many as can be told apart."""
    sound = (
        curve
        for curve in numbers.curves(finding.trials)
        if all(0 <= loss < _LARGEST_LOSS for loss in curve.losses)
        and curve.samples[1] > 0
        and curve.seconds[-1] > 0
    )
    return tuple(sound)[: len(_LOOKS)]


def _below(by_samples: Axes, by_seconds: Axes, found: Sequence[Curve]) -> None:
    by_samples.set_xscale("log")
    low = float(min(curve.samples[1] for curve in found))
    high = float(max(curve.samples[-1] for curve in found))
    by_samples.set_xlim(low / 1.1, high * 1.1)
    ticks = log_ticks(low / 1.1, high * 1.1)
    # Half of the picture has room for half of the numbers.
    curves.put(by_samples, ticks[:: 1 + len(ticks) // 5], units.significant)
    by_samples.set_xlabel("examples learnt from (logarithmic)")
    end = max(curve.seconds[-1] for curve in found)
    by_seconds.set_xlim(0, end)
    ticks = even_ticks(0, end)
    curves.put(by_seconds, ticks[:: 1 + len(ticks) // 5], units.significant)
    by_seconds.set_xlabel("seconds of training")


def _learning_in_words(curve: Curve) -> str:
    return (
        f"With {curve.batch:,} examples a batch the loss fell from "
        f"{units.significant(curve.losses[0])} to "
        f"{units.significant(curve.losses[-1])} in {units.seconds(curve.seconds[-1])}, "
        f"after {curve.samples[-1]:,} examples"
    )


def _has_sizes(finding: Finding) -> bool:
    return bool(numbers.sized(finding.timings))


KINDS: dict[str, Kind[Finding]] = {
    "batches": Kind(batch_sizes, "Which batch is large enough", _has_sizes, leads=True),
    "steps": Kind(step_costs, "What a step costs", _has_sizes),
    "memory": Kind(memory, "The memory of a batch", lambda f: bool(measured(f))),
    "learning": Kind(learning, "Speed is not learning", lambda f: bool(trainings(f))),
}
