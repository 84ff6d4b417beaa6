"""What a run over sizes on two devices means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit import units
from perfkit.experiments.cpu_or_gpu import numbers, work
from perfkit.experiments.shared.words import brief, noise, quoted
from perfkit.findings.record import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.experiments.cpu_or_gpu.numbers import Crossing, Curve, Point
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Estimate


# The ways to bring a batch to the GPU, as variants have them.
FLOATS, BYTES, AHEAD = "GPU fed floats", "GPU fed bytes", "GPU fed ahead"
# What preparing told.
CORES, YOURS, HELD_BACK = "cores", "yours", "held back"
_SOUND = 1e18
# A fit that misses a step by more does not say where the time of a step goes.
_TRUSTED = 0.25


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the reader asked.

    Attributes:
        yours: The model to place on the curve; "" for none.
        weights: Of a dense network to place on it; 0 for none.
    """

    yours: str = ""
    weights: int = 0


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A network placed on the curve by its arithmetic.

    Attributes:
        what: Its name.
        width: Of the dense network whose step has as much arithmetic.
        gain: What the second device gains, measured or read off the curve.
        low: Lower end of the 95 % interval.
        high: Upper end of it.
        measured: Whether it was measured.
    """

    what: str
    width: float
    gain: float
    low: float
    high: float
    measured: bool


def grounds(measured: Measurement, asked: Asked) -> Iterator[str]:
    """The facts that a verdict rests on."""
    yield from noise(measured)
    drawn = numbers.curve(measured)
    if drawn:
        gains = "; ".join(f"{p.what} {brief(p.gain)}" for p in drawn.points)
        first, second = numbers.devices(measured)
        yield f"Gain of {quoted(second)} over {quoted(first)}: {gains}."
    yield from _costs(measured)
    if drawn:
        yield from _overhead(measured, drawn)
        yield from _other_batches(measured, drawn)
        yield from _dots(measured, drawn, asked)
    yield from _wire(measured)
    yield from _held_back(measured)
    yield from failures(measured)


def dots(measured: Measurement, drawn: Curve, asked: Asked) -> tuple[Dot, ...]:
    """The reader's models, where the curve reaches them."""
    found = [_measured(measured, drawn, asked.yours), _estimated(drawn, asked.weights)]
    return tuple(dot for dot in found if dot)


def failures(measured: Measurement) -> Iterator[str]:
    """How trials ended that did not complete, and why variants were not run."""
    ended = {
        trial.variant: trial.message or trial.outcome
        for trial in measured.trials
        if trial.outcome not in ("completed", "stopped")
    }
    yield from (f"{quoted(name)} {how.rstrip('.')}." for name, how in ended.items())
    missing = [arm for arm in measured.arms if arm.unavailable]
    if missing:
        names = ", ".join(quoted(arm.name) for arm in missing)
        yield f"Not run: {names} ({missing[0].unavailable.rstrip('.')})."


def _costs(measured: Measurement) -> Iterator[str]:
    for device, fit in numbers.fits(measured).items():
        said = [f"{between(fit.launch, units.seconds)} before any work"]
        said += _speed(fit.per_flop, "FLOP") + _speed(fit.per_byte, "B")
        yield (
            f"A step costs {quoted(device)}, as fitted, {', then '.join(said[:2])}"
            f"{''.join(f' and {part}' for part in said[2:])}; the fit misses a "
            f"measured step by {units.percent(fit.misses)} at most."
        )


def _speed(each: Estimate, unit: str) -> list[str]:
    """What one over a cost is; nothing where the cost may be none."""
    if each.low <= 0:
        return []
    fast = 1 / each.value, 1 / each.high, 1 / each.low
    return [units.rate_between(*fast, unit)]


def between(part: Estimate, write: Any) -> str:
    """A fitted number with its interval."""
    return units.between(part.value, part.low, part.high, write)


def _overhead(measured: Measurement, drawn: Curve) -> Iterator[str]:
    _, second = numbers.devices(measured)
    fit = numbers.fits(measured).get(second)
    if fit is None or fit.launch.low <= 0 or fit.misses > _TRUSTED:
        return
    shares = [
        f"{units.percent(fit.launch_share(p.size.cost))} of a step at {p.what}"
        for p in (drawn.points[0], drawn.points[-1])
        if p.size
    ]
    yield (
        f"On {quoted(second)} the part before any work is {' and '.join(shares)}, as "
        "fitted: more arithmetic units do not make that part shorter; a faster core, "
        "XLA and several steps in a call can."
    )


def _other_batches(measured: Measurement, drawn: Curve) -> Iterator[str]:
    along = {p.what: p for p in drawn.points}
    for point in numbers.points(measured):
        usual = along.get(point.what)
        if usual and point.batch != drawn.batch:
            yield (
                f"With {point.batch:,} instead of {drawn.batch:,} examples a batch, "
                f"{point.what} gains {brief(point.gain)} instead of "
                f"{units.ratio(usual.gain.ratio)}."
            )


def _dots(measured: Measurement, drawn: Curve, asked: Asked) -> Iterator[str]:
    for dot in dots(measured, drawn, asked):
        gain = units.ratio_between(dot.gain, dot.low, dot.high)
        width = f"width {units.significant(dot.width)}"
        if dot.measured:
            on_curve, *_ = drawn.at(dot.width)
            yield (
                f"A step of {quoted(dot.what)} has as much arithmetic as {width}; it "
                f"gains {gain}, where the curve has "
                f"{units.ratio(on_curve)}."
            )
        else:
            yield (
                f"A dense network with {dot.what} is like {width}: by the curve it "
                f"gains {gain}. It was not measured itself."
            )


def _measured(measured: Measurement, drawn: Curve, yours: str) -> Dot | None:
    point = next((p for p in numbers.points(measured) if p.what == yours), None)
    told = measured.notes.get(YOURS)
    flops = told.get("flops") if isinstance(told, dict) else None
    if point is None or not isinstance(flops, int | float) or not 0 < flops < _SOUND:
        return None
    width = _width_of(drawn, float(flops))
    if width is None:
        return None
    return Dot(
        what=yours,
        width=width,
        gain=point.gain.ratio,
        low=point.gain.low,
        high=point.gain.high,
        measured=True,
    )


def _estimated(drawn: Curve, weights: int) -> Dot | None:
    if not 0 < weights < _SOUND:
        return None
    width = _within(drawn, [work.weights(w) for w in drawn.widths], weights)
    if width is None:
        return None
    middle, low, high = drawn.at(width)
    return Dot(
        what=f"{weights:,} weights",
        width=width,
        gain=middle,
        low=low,
        high=high,
        measured=False,
    )


def _width_of(drawn: Curve, flops: float) -> float | None:
    """The width whose step has that arithmetic; None beyond the curve."""
    known = [work.cost(width, drawn.batch).flops for width in drawn.widths]
    return _within(drawn, known, flops)


def _within(drawn: Curve, known: list[float], value: float) -> float | None:
    if not known[0] <= value <= known[-1]:
        return None
    x = np.interp(np.log(value), np.log(known), np.log(drawn.widths))
    return float(np.exp(x))


def _wire(measured: Measurement) -> Iterator[str]:
    fed = measured.timing(FLOATS)
    resident = next((c for c in measured.comparisons if c.variant == FLOATS), None)
    if fed is None or resident is None:
        return
    share, low, high = (
        max(0.0, 1 - r) for r in (resident.ratio, resident.high, resident.low)
    )
    yield (
        "Of a step, bringing each batch to the GPU as floats takes "
        f"{units.between(share, low, high, units.percent)}: {resident.verdict} than "
        "with a batch that stays there."
        if not resident.is_noise
        else f"Bringing each batch to the GPU as floats: {brief(resident)}."
    )
    for name, how in ((BYTES, "As bytes"), (AHEAD, "Ahead of the step")):
        compared = measured.compare(name, FLOATS)
        if compared:
            yield f"{how} instead, the training runs at {brief(compared)}."


def _held_back(measured: Measurement) -> Iterator[str]:
    if measured.notes.get(HELD_BACK):
        yield (
            "oneDNN is switched off here by TF_ENABLE_ONEDNN_OPTS, so the CPU is "
            "slower than it could be; unset it and run again."
        )


_PAYS = f"pays (at least {units.percent(numbers.PAYS - 1)} faster)"
_QUIETER = "End what else runs on this machine, or give the run more seconds."


def judge(measured: Measurement, asked: Asked) -> Verdict:
    """Say from which size on the second device pays, why, and what to change.

    Args:
        measured: The run.
        asked: What was asked.
    """
    because = tuple(grounds(measured, asked))
    drawn = numbers.curve(measured)
    if drawn is None:
        return Verdict(
            headline="Fewer than three widths were timed on both devices, so nothing "
            "is said about where the second one pays.",
            because=because,
            next="Look at how the trials ended, or give the run more seconds.",
        )
    found = numbers.crossing(drawn)
    who = _second(measured)
    return Verdict(
        headline=f"{who} {_said(found, drawn)}.",
        because=because,
        next=_next(found, drawn, measured),
    )


def _second(measured: Measurement) -> str:
    """The second device, as a sentence begins with it."""
    cores = measured.notes.get(CORES)
    if numbers.devices(measured)[1] == "GPU":
        return "The GPU"
    return "A second core" if cores == 2 else f"Training on all {cores or 'the'} cores"


def _said(found: Crossing, drawn: Curve) -> str:
    batch = f"batch {drawn.batch:,}"
    narrowest, widest = drawn.points[0], drawn.points[-1]
    ends = f"{_gain(widest, ' the examples per second')}, {_gain(narrowest)}"
    if found.kind == "from":
        return f"{_PAYS} {_from(found, drawn)}; {ends}"
    if found.kind == "always":
        return (
            f"{_PAYS} at every width that was tried, from {narrowest.what} on "
            f"({batch}): {ends}"
        )
    if found.kind == "never":
        return (
            f"never {_PAYS} within what was tried, up to {widest.what} ({batch}): "
            f"{ends}"
        )
    return f"{_elsewhere(found, drawn)} ({batch}): {ends}"


def _from(found: Crossing, drawn: Curve) -> str:
    batch = f"batch {drawn.batch:,}"
    high = _width(found.high or 0.0)
    if found.width is None or not units.is_known(found.low or 0.0, found.high or 0.0):
        return f"from width {high} on at the latest, 95 % sure ({batch})"
    between = f"95 % interval {_width(found.low or 0.0)} to {high}"
    return f"from about width {_width(found.width)} on ({between}; {batch})"


def _elsewhere(found: Crossing, drawn: Curve) -> str:
    """Where it pays, where no single width parts what pays from what does not."""
    said = {p.what: numbers.says(p) for p in drawn.points}
    paying = [what for what, says in said.items() if says == "pays"]
    not_so = [what for what, says in said.items() if says == "does not"]
    pays = f"{_PAYS} at {', '.join(paying)}" if paying else ""
    if found.kind == "mixed":
        return f"{pays}, and not at {', '.join(not_so)}"
    lost = [what for what, says in said.items() if says == "open"]
    if pays:
        return f"{pays}, and noise hides whether it does at {', '.join(lost)}"
    them = "each of them" if len(lost) == len(said) else ", ".join(lost)
    return f"is not shown to pay at any width: noise hides it at {them}"


def _gain(point: Point, of: str = "") -> str:
    times, more = brief(point.gain).split(" ", 1)
    return f"{times}{of} at {point.what} {more}"


def _width(width: float) -> str:
    """Two digits say as much as is known of where lines cross."""
    return units.significant(width, 2)


def _next(found: Crossing, drawn: Curve, measured: Measurement) -> str:
    first, _ = numbers.devices(measured)
    keep = "the CPU" if first == "CPU" else "one core, and give the others other work"
    if found.kind == "open":
        return _QUIETER
    if found.kind == "always":
        return f"Train with it; ask again with a `narrowest` below {_narrowest(drawn)}."
    larger = _larger(measured, drawn)
    if found.kind == "never":
        return f"Keep such networks on {keep}{larger}."
    return f"Train on it what lies beyond; keep smaller steps on {keep}{larger}."


def _larger(measured: Measurement, drawn: Curve) -> str:
    """What makes a step larger, where the run has shown that it helps."""
    paying = [
        point
        for point in numbers.points(measured)
        if point.size and point.batch > drawn.batch and numbers.says(point) == "pays"
    ]
    if not paying:
        return ""
    batch = f"`batch_size={paying[-1].batch}`, with which {paying[-1].what} pays"
    return (
        f", or make a step larger: {batch}. `perfkit run execution-mode` measures what "
        "several steps in a call bring"
    )


def _narrowest(drawn: Curve) -> str:
    return drawn.points[0].what.removeprefix("width ")
