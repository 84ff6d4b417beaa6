"""From ratios to causes: what is claimed of a training, and what is not."""

import math
from collections.abc import Collection, Sequence

from perfkit.diagnosis.change import LINE, Change, without_input
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.rounds import AS_GIVEN, CLAIMED
from perfkit.experiments.shared.words import rounds
from perfkit.findings.diagnosis import (
    OF_INPUT,
    TOGETHER,
    Cause,
    Gain,
    Seconds,
    leaves_line_out,
)
from perfkit.measure.measurement import Measurement
from perfkit.measure.statistics import Comparison
from perfkit.units import is_known

# The ceiling gives way to what names the reason, if that brings so much of it.
_EXPLAINS = 0.15
_PLAIN = 1.15
# What changes the learning waits for a defect whose gain is so much of its own.
_SHARES = 0.2
# A larger batch is a remedy for it, too: so it waits only where it is large already.
_OVERHEAD = "step-overhead"
_RETRACING = "retracing"
# They slow all parts of a training, and so may be why a ceiling brings something.
_ANYWHERE = (_RETRACING, "eager", "debugging", "threads")


def step_of(measured: Measurement, facts: Facts) -> Seconds | None:
    """Seconds of a step as given, its share of an epoch's end included."""
    timing = measured.timing(AS_GIVEN)
    if timing is None or not timing.low > 0:
        return None
    ends = (timing.rate, timing.high, timing.low)
    median_s, low, high = (facts.batch / rate for rate in ends)
    return Seconds(median_s=median_s, low=low, high=high)


def causes(
    changes: Sequence[Change],
    measured: Measurement,
    noted: Sequence[Cause] = (),
    at_once: Collection[str] = (),
) -> tuple[Cause, ...]:
    """What changes proved, the largest gain first.

    Args:
        changes: All that apply.
        measured: What was measured.
        noted: What no change proves.
        at_once: Names of those that were measured together.
    """
    found = _found(changes, measured, at_once)
    ceilings = [(one, c) for one, c in found if one.ceiling]
    left_out = {one.name for one, c in ceilings if _named(c, found)}
    # One batch again and again has one shape, which keeps functions from being traced
    # anew: then it may not be the input that this ceiling has found.
    untried = (
        one.cause == _RETRACING and measured.compare(one.name, AS_GIVEN) is None
        for one in changes
    )
    if any(untried) or any(cause.cause == _RETRACING for cause in noted):
        left_out |= {one.name for one, _ in ceilings if one.cause == "input-bound"}
    left_out.update(set_aside(changes, measured, at_once))
    return rank([_cause(s, c, measured) for s, c in found if s.name not in left_out])


def set_aside(
    changes: Sequence[Change], measured: Measurement, at_once: Collection[str] = ()
) -> tuple[str, ...]:
    """Name what helps, but changes what is learnt: to be judged after the defects.

    What dwarfs the defects is not set aside.
    """
    found = _found(changes, measured, at_once)
    plain = [(s, c) for s, c in found if s.combines and not s.ceiling]
    defects = [(s, c) for s, c in plain if s.kind_at(c.ratio) == "defect"]
    return tuple(
        one.name
        for one, compared in found
        if not one.combines
        and any(
            _explains(c.ratio, compared, _SHARES)
            for s, c in defects
            if s.cause != _OVERHEAD or s.cause == one.spares
        )
    )


def _found(
    changes: Sequence[Change], measured: Measurement, at_once: Collection[str] = ()
) -> list[tuple[Change, Comparison]]:
    """What is shown to help: by itself, or by all of it at once where nothing else is.

    Where none of them stands out by itself, and they do together, one of them at least
    does help; of each that is faster this is said, as likely.
    """
    faster = [
        (one, compared)
        for one in changes
        if one.cause != LINE
        and (compared := measured.compare(one.name, AS_GIVEN))
        and compared.verdict == "faster"
        and compared.ratio >= CLAIMED
    ]
    found = [(one, compared) for one, compared in faster if one.helps(compared)]
    together = measured.compare(TOGETHER, AS_GIVEN)
    by_itself = any(one.name in at_once for one, _ in found)
    if together and not by_itself and together.verdict == "faster":
        parts = [pair for pair in faster if pair[0].name in at_once]
        found += parts if together.stands_out else []
    return found


def rank(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """The same causes, the largest gain first; what can be done before what cannot.

    The training without its input is nothing that anybody can have: it comes behind the
    best change of the input, where there is one that brings something plain, and behind
    all else where nothing is wrong with its input. A
    callback that is left out does nothing any more: it comes behind what stops its
    tracing, where that may bring as much.
    """

    def place(one: Cause) -> tuple[bool, float, bool]:
        better = [o.speedup.estimate for o in causes if _is_better_done(o, one)]
        gain, limit = one.speedup.estimate, one.is_ceiling and one.kind != "defect"
        return limit, -min(gain, max(better, default=gain)), bool(better)

    return tuple(sorted(causes, key=place))


def _is_better_done(other: Cause, one: Cause) -> bool:
    """Whether it can be had, or keeps what is done, where ``one`` leaves that out."""
    if one.cause == "input-bound":
        return other.cause in OF_INPUT and other.speedup.estimate >= _PLAIN
    as_much = other.speedup.high >= one.speedup.low
    return one.cause == "callback" and other.cause == _RETRACING and as_much


def healthy(causes: Sequence[Cause], measured: Measurement) -> bool:
    """Whether enough was measured to show a defect, and none was."""
    tried = any(
        c.is_judged and c.verdict != "slower" and not leaves_line_out(c.variant)
        for c in measured.comparisons
    )
    return tried and not any(cause.kind == "defect" for cause in causes)


def gain(compared: Comparison) -> Gain:
    """The ratio as a speed-up."""
    return Gain(estimate=compared.ratio, low=compared.low, high=compared.high)


def _named(ceiling: Comparison, found: list[tuple[Change, Comparison]]) -> bool:
    """Whether a change that hangs on the ceiling says why it is there.

    An iterator that is made anew for each epoch is input, too; but the ends of epochs
    are few and random, so that no more of their gain counts than is shown.
    """
    return any(
        _explains(compared.low if one.own_pauses else compared.ratio, ceiling)
        for one, compared in found
        if one.after == ceiling.variant or one.own_pauses or one.cause in _ANYWHERE
    )


def _explains(gain: float, whole: Comparison, share: float = _EXPLAINS) -> bool:
    """Whether a gain is plain, and so much of the other."""
    return gain >= _PLAIN and math.log(gain) >= share * math.log(whole.ratio)


def _cause(change: Change, compared: Comparison, measured: Measurement) -> Cause:
    inferred = bool(change.inferred_if) and any(
        change.inferred_if in trial.notes for trial in measured.of(AS_GIVEN)
    )
    return Cause(
        cause=change.cause,
        change=change.name,
        kind=change.kind_at(compared.ratio),
        speedup=gain(compared),
        evidence=f"{change.changes} That runs {_how_fast(compared)}.",
        fix=change.fix,
        caution=change.caution,
        grade="inferred" if inferred else "measured here",
    )


def _how_fast(compared: Comparison) -> str:
    if not is_known(compared.low, compared.high):
        return f"faster, by how much is not known yet ({rounds(compared)})"
    return (
        f"at {compared.ratio:.2f}× the rate (95 % interval {compared.low:.2f} to "
        f"{compared.high:.2f}, {rounds(compared)})"
    )


def ceiling(changes: Sequence[Change], measured: Measurement) -> Gain | None:
    """What the training without its input reaches; None where that is not known."""
    change = without_input(changes)
    return measured_gain(change.name, measured) if change else None


def measured_gain(name: str, measured: Measurement) -> Gain | None:
    """What a variant brings; None where that is left open, or its interval is wide."""
    compared = measured.compare(name, AS_GIVEN)
    if compared is None or not compared.is_judged:
        return None
    return gain(compared) if is_known(compared.low, compared.high) else None
