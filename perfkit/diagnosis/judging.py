"""From ratios to causes: what is claimed of a training, and what is not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from perfkit.diagnosis.choosing import AS_GIVEN, CLAIMED
from perfkit.diagnosis.swap import Kind, Swap, without_input
from perfkit.experiments.shared.words import rounds
from perfkit.findings.diagnosis import Cause, Gain, Seconds
from perfkit.units import is_known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfkit.diagnosis.facts import Facts
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison

# The ceiling gives way to what names the reason, if that brings so much of it.
_EXPLAINS = 0.15
_PLAIN = 1.15
# What changes the learning waits for a defect whose gain is so much of its own.
_SHARES = 0.2
# A larger batch is a remedy for it, too: so it waits only where it is large already.
_OVERHEAD = "step-overhead"
_RETRACING = "retracing"
# Causes that lie in the input, each with a change that takes it away.
OF_INPUT = (
    *("serial-map", "no-prefetch", "no-cache", "python-input", "slow-read"),
    *("per-example-map", "late-shuffle"),
)
# They slow all parts of a training, and so may be why a ceiling brings something.
_ANYWHERE = (_RETRACING, "eager", "debugging", "threads", "determinism", "float64")


def step_of(measured: Measurement, facts: Facts) -> Seconds | None:
    """Seconds of a step as given, its share of an epoch's end included."""
    timing = measured.timing(AS_GIVEN)
    if timing is None or not timing.low > 0:
        return None
    ends = (timing.rate, timing.high, timing.low)
    median_s, low, high = (facts.batch / rate for rate in ends)
    return Seconds(median_s=median_s, low=low, high=high)


def causes(
    swaps: Sequence[Swap], measured: Measurement, noted: Sequence[Cause] = ()
) -> tuple[Cause, ...]:
    """What the swaps proved, the largest gain first; ``noted`` is what none proves."""
    found = _found(swaps, measured)
    ceilings = [(swap, c) for swap, c in found if swap.ceiling]
    left_out = {swap.name for swap, c in ceilings if _named(c, found)}
    # One batch again and again has one shape, which keeps functions from being traced
    # anew: then it is not the input that this ceiling has found.
    if any(cause.cause == _RETRACING for cause in noted):
        left_out |= {swap.name for swap, _ in ceilings if swap.cause == "input-bound"}
    left_out.update(set_aside(swaps, measured))
    return ranked([_cause(s, c, measured) for s, c in found if s.name not in left_out])


def set_aside(swaps: Sequence[Swap], measured: Measurement) -> tuple[str, ...]:
    """Name what helps, but changes what is learnt: to be judged after the defects.

    What dwarfs the defects is not set aside.
    """
    found = _found(swaps, measured)
    plain = [(s, c) for s, c in found if s.combines and not s.ceiling]
    defects = [(s, c) for s, c in plain if _kind(s, c) == "defect"]
    return tuple(
        swap.name
        for swap, compared in found
        if not swap.combines
        and any(
            _explains(c.ratio, compared, _SHARES)
            for s, c in defects
            if s.cause != _OVERHEAD or s.cause == swap.spares
        )
    )


def _found(
    swaps: Sequence[Swap], measured: Measurement
) -> list[tuple[Swap, Comparison]]:
    return [
        (swap, compared)
        for swap in swaps
        if (compared := measured.compare(swap.name, AS_GIVEN)) and claimed(compared)
    ]


def ranked(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """The same causes, the largest gain first; what can be done before what cannot.

    The training without its input is nothing that anybody can have: it comes behind the
    best change of the input, where there is one that brings something plain.
    """
    known = [c.speedup.estimate for c in causes if c.cause in OF_INPUT]
    best = max(known, default=0.0)

    def place(one: Cause) -> tuple[float, bool]:
        limit = one.cause == "input-bound" and best >= _PLAIN
        gain = min(best, one.speedup.estimate) if limit else one.speedup.estimate
        return -gain, limit

    return tuple(sorted(causes, key=place))


def claimed(compared: Comparison) -> bool:
    """Whether a gain is shown, and worth a change."""
    return compared.verdict == "faster" and compared.ratio >= CLAIMED


def healthy(causes: Sequence[Cause], measured: Measurement) -> bool:
    """Whether enough was measured to show a defect, and none was."""
    tried = any(c.is_judged and c.verdict != "slower" for c in measured.comparisons)
    return tried and not any(cause.kind == "defect" for cause in causes)


def gain(compared: Comparison) -> Gain:
    """The ratio as a speed-up."""
    return Gain(estimate=compared.ratio, low=compared.low, high=compared.high)


def _named(ceiling: Comparison, found: list[tuple[Swap, Comparison]]) -> bool:
    """Whether a swap that hangs on the ceiling says why it is there.

    An iterator that is made anew for each epoch is input, too; but the ends of epochs
    are few and random, so that no more of their gain counts than is shown.
    """
    return any(
        _explains(compared.low if swap.own_pauses else compared.ratio, ceiling)
        for swap, compared in found
        if swap.after == ceiling.variant or swap.own_pauses or swap.cause in _ANYWHERE
    )


def _explains(gain: float, whole: Comparison, share: float = _EXPLAINS) -> bool:
    """Whether a gain is plain, and so much of the other."""
    return gain >= _PLAIN and math.log(gain) >= share * math.log(whole.ratio)


def _cause(swap: Swap, compared: Comparison, measured: Measurement) -> Cause:
    inferred = bool(swap.inferred_if) and any(
        swap.inferred_if in trial.notes for trial in measured.of(AS_GIVEN)
    )
    return Cause(
        cause=swap.cause,
        swap=swap.name,
        kind=_kind(swap, compared),
        speedup=gain(compared),
        evidence=f"{swap.changes} That runs {_how_fast(compared)}.",
        fix=swap.fix,
        grade="inferred" if inferred else "measured here",
    )


def _how_fast(compared: Comparison) -> str:
    if not is_known(compared.low, compared.high):
        return f"faster, by how much is not known yet ({rounds(compared)})"
    return (
        f"at {compared.ratio:.2f}× the rate (95 % interval {compared.low:.2f} to "
        f"{compared.high:.2f}, {rounds(compared)})"
    )


def _kind(swap: Swap, compared: Comparison) -> Kind:
    if swap.kind != "by gain":
        return swap.kind
    return "defect" if compared.ratio >= swap.defect_from else "opportunity"


def ceiling(swaps: Sequence[Swap], measured: Measurement) -> Gain | None:
    """What the training without its input reaches; None where that is not known."""
    swap = without_input(swaps)
    return measured_gain(swap.name, measured) if swap else None


def measured_gain(name: str, measured: Measurement) -> Gain | None:
    """What an arm brings; None where that is left open, or its interval is wide."""
    compared = measured.compare(name, AS_GIVEN)
    if compared is None or not compared.is_judged:
        return None
    return gain(compared) if is_known(compared.low, compared.high) else None
