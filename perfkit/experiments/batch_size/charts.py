"""The charts that only findings about batch sizes have."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, RED, Figure, Kind
from perfkit.charts.layout import even_ticks, log_ticks
from perfkit.experiments.batch_size import numbers
from perfkit.experiments.batch_size.numbers import Found, Knee, Line
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

    meant = place = "too noisy to say which size is large enough"
    if knee.firm:
        meant = "◆ the smallest size that is not shown to be slower than the best"
        place = _place(knee)
    caption = ["bar: 95 % interval", meant, *guess(finding).caption]
    ends = {n: units.rate_between(t.rate, t.low, t.high) for n, t in known.items()}
    words = [f"{size:,} examples a batch: {rate}" for size, rate in ends.items()]
    words.append(place.capitalize())
    if loops:
        caption.append("dotted: the loop in circulation, one network through all sizes")
    for name, of in loops.items():
        listed = ", ".join(f"{n:,} {units.significant(rate)}" for n, rate in of.items())
        words.append(f"{name[:1].upper()}{name[1:]} says: {listed}")
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
    what = "seconds of a step (logarithmic)"
    return curves.picture(title, what, caption, words, fill)


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
_NOT_TRIED = Found(fits=0, fails=None, how="", asked=0, by_limit=False)


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
        forecast = [float(expected.total(size)) for size in sizes] if expected else []
        seen = [*held.values(), *filter(None, (*forecast, asked, limit))]
        curves.measure(axes, seen, [], units.size)
        # All of it is above 0, or none: what a network holds cannot be negative.
        if expected and forecast[0]:
            x = np.geomspace(sizes[0], sizes[-1], 60)
            y = expected.fixed + x * expected.activations
            axes.plot(x, y, color=INK, lw=1.4, alpha=0.8)
            curves.label(axes, "forecast from shapes", sizes[-1], forecast[-1])
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
    words = [f"{n:,} examples a batch: {units.size(held[n])}" for n in held]
    if expected:
        parts = "weights, gradients, optimizer and activations"
        caption.append(f"line: {parts}, from shapes")
        shapes = [f", forecast {units.size(expected.total(size))}" for size in held]
        words = [f"{each}{shape}" for each, shape in zip(words, shapes, strict=True)]
    if found.fits:
        words.append(f"{found.fits:,} fit")
        into = f" into the {units.size(limit)} that perfkit allows" if limit else ""
        size = f", it had asked for {units.size(asked)}" if asked else ""
        caption.append(f"▲ dashed: {words[-1]}{into}{size}")
    if found.fails:
        ended = "do not fit" if found.by_limit else "failed, nobody knows why"
        words.append(f"{found.fails:,} {ended}")
        caption.append(f"✕ dotted: {words[-1]}")
    what = "bytes above the start, at the peak (logarithmic)"
    return curves.picture(title, what, caption, words, fill)


def measured(finding: Finding) -> dict[int, float]:
    """Bytes at the peak: of the GPU where there is one, else of the process."""
    for what in ("gpu_peak", "resident"):
        known = numbers.memory(finding.trials, what)
        if above := {size: held for size, held in known.items() if held > 0}:
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
    drawn = numbers.curves(finding.trials)[: len(_LOOKS)]
    if not drawn:
        return canvas.message(title, "No training was run to learn.")
    held_out = "loss of examples that were held out; one training at each batch size"
    otherwise = "a batch size changes the training itself: fewer, larger steps"
    lines = canvas.caption_lines([held_out, otherwise])

    def draw(drawing: Drawing) -> None:
        gap = canvas.WIDTH - _MIDDLE
        by_samples = curves.axes(drawing, "loss", left=60, right=gap + 20)
        by_seconds = curves.axes(drawing, "", left=_MIDDLE + 20, right=120)
        for curve, (colour, dashes) in zip(drawn, _LOOKS, strict=False):
            style: Any = {"color": colour, "ls": dashes, "lw": 1.8}
            by_samples.plot(curve.samples[1:], curve.losses[1:], **style)
            by_seconds.plot(curve.seconds, curve.losses, **style)
        low = min(curve.samples[1] for curve in drawn) / 1.1
        high = max(curve.samples[-1] for curve in drawn) * 1.1
        end = max(curve.seconds[-1] for curve in drawn)
        by_samples.set(xscale="log", xlim=(low, high))
        by_samples.set_xlabel("examples learnt from (logarithmic)")
        by_seconds.set(xlim=(0, end), xlabel="seconds of training")
        both = (by_samples, log_ticks(low, high)), (by_seconds, even_ticks(0, end))
        worst = max(loss for curve in drawn for loss in curve.losses)
        for axes, ticks in both:
            # Half of the picture has room for half of the numbers.
            curves.put(axes, ticks[:: 1 + len(ticks) // 5], units.significant)
            curves.even(axes, max(worst, 1e-6), units.significant)
        names = [f"batch {curve.batch:,}" for curve in drawn]
        curves.key(by_seconds, names, _LOOKS, (1.03, 1.13))

    words = [
        f"With {curve.batch:,} examples a batch the loss fell from "
        f"{units.significant(curve.losses[0])} to "
        f"{units.significant(curve.losses[-1])} in {units.seconds(curve.seconds[-1])}, "
        f"after {curve.samples[-1]:,} examples"
        for curve in drawn
    ]
    alt = f"{'. '.join([title, *words])}."
    return canvas.drawn(title, lines, curves.height(lines), alt, draw)


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
