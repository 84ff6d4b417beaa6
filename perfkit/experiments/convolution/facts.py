"""What a run of convolutions shows besides the rates: facts, a sentence each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.convolution import numbers
from perfkit.experiments.convolution.ceilings import ARITHMETIC, MEMORY
from perfkit.experiments.convolution.ways import BASELINE, GROUPS, WAYS
from perfkit.experiments.shared.words import interval, quoted
from perfkit.measure.pay_back import pay_back

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perfkit.experiments.convolution.numbers import Bound, Speed
    from perfkit.experiments.convolution.problem import Problem
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.pay_back import PayBack

# A first call is worth a sentence from so many times that of the baseline on.
_DEAR = 2
_HELD_UP: dict[Bound, str] = {
    "compute": "Compute-bound, by their share of the matrix product's speed",
    "memory": "Memory-bound, by their share of the memory's speed",
    "overhead": "Overhead-bound, by the share of a call that is left without work",
    "none": "Held up by none of these but by steps of their own, such as copies",
}


def because(
    measured: Measurement, problem: Problem, found: list[Speed]
) -> tuple[str, ...]:
    """The facts that a verdict rests on.

    Args:
        measured: The run.
        problem: What was convolved.
        found: How near each way comes to the limits.
    """
    return (
        *_limits(measured, problem),
        *_held_up(found),
        *_first_calls(measured, problem),
        *_shorter(measured),
        *_lighter(measured, problem),
        *untimed(measured),
    )


def _limits(measured: Measurement, problem: Problem) -> Iterator[str]:
    """What the machine can do, and where this convolution lies between its limits."""
    peak, memory = measured.timing(ARITHMETIC), measured.timing(MEMORY)
    if peak is None or memory is None:
        return
    way = WAYS[BASELINE]
    flops, traffic = way.flops(problem), way.traffic(problem)
    fast, wide = peak.rate * flops, memory.rate * traffic
    intensity, ridge = flops / traffic, fast / wide
    limit = "arithmetic" if intensity > ridge else "memory"
    yield (
        f"In this run a large matrix product reached {gflops(fast / 1e9)}, and memory "
        f"{units.size(wide)}/s. This convolution has {units.significant(intensity)} "
        f"multiplications and additions for each byte; from {units.significant(ridge)} "
        f"on arithmetic is the limit, so of the two it is {limit}."
    )


def _held_up(found: list[Speed]) -> Iterator[str]:
    """The ways by what holds them up, each with the share that says so."""
    for bound, words in _HELD_UP.items():
        ways = [s for s in found if s.bound == bound and s.compute is not None]
        if ways:
            named = ", ".join(f"{quoted(s.variant)}{_share(s)}" for s in ways)
            yield f"{words}: {named}.{_beyond(ways)}"


def _share(speed: Speed) -> str:
    """The share that says what holds a way up; "" where none does."""
    shares: dict[Bound, float | None] = {
        "compute": speed.compute,
        "memory": speed.memory,
        "overhead": speed.overhead,
    }
    share, within = shares.get(speed.bound), speed.within.get(speed.bound)
    if share is None:
        return ""
    way = WAYS.get(speed.variant, WAYS[BASELINE])
    short = speed.bound == "compute" and way.precision == "bfloat16"
    between = f" ({' to '.join(map(units.percent, within))})" if within else ""
    return f" {units.percent(share)}{between}{' of that in bfloat16' * short}"


def _beyond(ways: list[Speed]) -> str:
    """What a share means that is shown to be more than the whole; "" without one."""
    if not any(s.within.get(s.bound, (0.0,))[0] > 1 for s in ways):
        return ""
    return (
        " More than 100 %: a limit is the speed of one large piece of work. Work of "
        "another shape may suit this machine better, and Winograd and FFT need fewer "
        "operations than are counted."
    )


def _first_calls(measured: Measurement, problem: Problem) -> Iterator[str]:
    """What each first call costs, and after how many calls it has paid back."""
    base, costly = measured.timing(BASELINE), []
    for name in numbers.contenders(measured):
        timing, back = measured.timing(name), pay_back(measured, name, BASELINE)
        if name == BASELINE or base is None or timing is None or back is None:
            continue
        first = f"{units.seconds(timing.first_call_s)} for its first call"
        if back.paying == "pays back":
            later = units.seconds(problem.batch / timing.rate)
            yield (
                f"{quoted(name)} takes {first} and {later} for a later one: it pays "
                f"back after {_calls(back, problem)}."
            )
        elif timing.first_call_s > _DEAR * base.first_call_s:
            costly.append(f"{quoted(name)} takes {first}")
    if costly:
        yield (
            f"{', '.join(costly)}: that is not shown to pay back, as no later call is "
            f"shown to be faster than {quoted(BASELINE)}."
        )


def _calls(back: PayBack, problem: Problem) -> str:
    calls, low, high = (
        None if examples is None else math.ceil(examples / problem.batch)
        for examples in (back.examples, back.low, back.high)
    )
    if high is None or not units.is_known(low or 0, high):
        return f"{low:,} calls at least"
    return f"{calls:,} call{'s' * (calls != 1)} (95 % interval {low:,} to {high:,})"


def _shorter(measured: Measurement) -> Iterator[str]:
    for name, way in WAYS.items():
        compared = measured.compare(name, BASELINE)
        if way.precision != "float32" and compared:
            yield (
                f"{quoted(name)} runs at {units.ratio(compared.ratio)} "
                f"{quoted(BASELINE)} ({interval(compared)}; {compared.judgement}). Its "
                "answer is right to 2 or 3 digits only, so it does not compete."
            )


def _lighter(measured: Measurement, problem: Problem) -> Iterator[str]:
    whole = WAYS[BASELINE].flops(problem)
    for name in GROUPS["lighter"]:
        compared = measured.compare(name, BASELINE)
        if compared:
            part = WAYS[name].flops(problem) / whole
            yield (
                f"{quoted(name)} is another layer with {units.percent(part)} of the "
                f"arithmetic; it runs at {units.ratio(compared.ratio)} "
                f"{quoted(BASELINE)} ({interval(compared)})."
            )


def untimed(measured: Measurement) -> Iterator[str]:
    """What was not timed, and how trials ended that did not complete."""
    for arm in measured.arms:
        if arm.unavailable:
            yield f"{quoted(arm.name)} is not timed: {arm.unavailable}."
    ended = {
        trial.variant: trial.message or trial.outcome
        for trial in measured.trials
        if trial.outcome not in ("completed", "stopped")
    }
    for name, how in ended.items():
        yield f"{quoted(name)} {how}."


def gflops(value: float) -> str:
    """Write arithmetic per second, given in thousand millions."""
    return f"{units.significant(value)} GFLOP/s"


def listed(names: Iterable[str]) -> str:
    """Some variants' names, at least one, as they stand in a sentence."""
    *others, last = [quoted(name) for name in names]
    return f"{', '.join(others)} and {last}" if others else last
