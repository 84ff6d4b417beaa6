"""What the ways to convolve cost, and which of them pays."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.convolution import numbers, trying
from perfkit.experiments.convolution import problem as convolution_problem
from perfkit.experiments.convolution.numbers import (
    ARITHMETIC,
    MEMORY,
    at_equal_work,
    widened,
)
from perfkit.experiments.convolution.ways import BASELINE, GROUPS, OWN, WAYS
from perfkit.experiments.shared.words import interval, quoted, ratio
from perfkit.findings.record import Verdict
from perfkit.measure.measurement import Arm
from perfkit.measure.pay_back import pay_back
from perfkit.measure.statistics import WORTH_KNOWING
from perfkit.measure.tick import REFUSED, Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perfkit.experiments.convolution.numbers import Bound, Speed
    from perfkit.experiments.convolution.problem import Problem
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.pay_back import PayBack
    from perfkit.measure.statistics import Comparison, Timing
    from perfkit.measure.tick import Yielded


# One fewer, as asked, one more, and the next count with the same remainder of 8.
_AROUND = (0, -1, 1, 8)
_NAMED = 3


def baseline(problem: Problem) -> str:
    """The name of the arm with the counts that were asked for."""
    return _name(problem)


def arms(problem: Problem) -> dict[str, Arm]:
    """One arm for each pair of counts, the one that was asked for first."""
    return {
        name: Arm(
            name,
            functools.partial(convolution_problem.convolving, WAYS[BASELINE], one),
            f"{one.channels} channels in, {one.filters} out.",
            baseline(problem),
        )
        for name, one in _problems(problem).items()
    }


def prepare(problem: Problem) -> Iterator[Yielded]:
    """Check the answer at every pair of counts, on one image of the batch."""
    channels, refused = {}, {}
    for name, one in _problems(problem).items():
        yield Note("progress", f"Checking the answer with {name}")
        image = dataclasses.replace(one, batch=1)
        if why := trying.tried(WAYS[BASELINE], image, math.inf).why_not:
            refused[name] = why
        channels[name] = {"in": one.channels, "out": one.filters, "flops": one.flops}
    yield Note("channels", channels)
    yield Note(REFUSED, refused)


def judge_channels(measured: Measurement, problem: Problem) -> Verdict:
    """Say which counts run at another speed, at equal work, than the one asked for."""
    base = baseline(problem)
    timed = measured.timing(base)
    found = _at_equal_work(measured, problem)
    if timed is None or not found:
        return Verdict(headline="No two channel counts could be compared.")
    shown = sorted((c for c in found if not c.is_noise), key=lambda c: c.ratio)
    speed = units.significant(timed.rate * problem.flops / 1e9)
    return Verdict(
        headline=_headline(base, found, shown),
        because=(
            f"{base}: {speed} GFLOP/s. All ratios are of arithmetic per second, since "
            "other counts are other amounts of work, and their intervals are wide "
            f"enough for all {len(found)} to hold at once.",
            *(f"{_sentence(c)}." for c in shown),
        ),
        next=_next(problem, found, shown),
    )


def _headline(base: str, found: list[Comparison], shown: list[Comparison]) -> str:
    slower = [c for c in shown if c.verdict == "slower"]
    faster = [c for c in reversed(shown) if c.verdict == "faster"]
    worst = slower or faster
    if worst:
        others = f", and {len(shown) - 1} more counts differ" if shown[1:] else ""
        return f"Channel counts matter here: {_sentence(worst[0])}{others}."
    if all(c.verdict == "no difference shown" for c in found):
        return f"No channel count is shown to run at another speed than {base}."
    return f"Too noisy to say whether any channel count differs from {base}."


def _next(problem: Problem, found: list[Comparison], shown: list[Comparison]) -> str:
    better = [c for c in shown if c.verdict == "faster"]
    if better:
        return f"Try {better[-1].variant}: it does more arithmetic in the same time."
    if shown:
        slow = ", ".join(c.variant for c in shown[:_NAMED])
        return f"Keep {baseline(problem)}, and avoid {slow}."
    if any(c.verdict == "too noisy to say" for c in found):
        return "End what else runs on this machine, or give the run more seconds."
    return "Choose channel counts for what they learn, not for their speed."


def _sentence(compared: Comparison) -> str:
    return (
        f"{compared.variant} runs at {ratio(compared)} the speed of "
        f"{compared.baseline} ({interval(compared)})"
    )


def _at_equal_work(measured: Measurement, problem: Problem) -> list[Comparison]:
    known = {
        name: compared
        for name in _problems(problem)
        if name != baseline(problem)
        and (compared := measured.compare(name, baseline(problem)))
    }
    work = {name: one.flops / problem.flops for name, one in _problems(problem).items()}
    return [
        at_equal_work(
            # Of many counts one differs by chance; this asks more of each of them.
            widened(compared, len(known)),
            work[name],
            measured.noise_floor or 1.0,
        )
        for name, compared in known.items()
    ]


def _problems(problem: Problem) -> dict[str, Problem]:
    pairs = [
        (problem.channels + more, problem.filters + others)
        for more in _AROUND
        for others in _AROUND
    ]
    made = (
        dataclasses.replace(problem, channels=channels, filters=filters)
        for channels, filters in pairs
        if channels and filters
    )
    return {_name(one): one for one in made}


def _name(problem: Problem) -> str:
    return f"{problem.channels} in, {problem.filters} out"


# A first call is worth a sentence from so many times that of the baseline on.
_DEAR = 2
_HELD_UP: dict[Bound, str] = {
    "compute": "Compute-bound, by their share of the matrix product's speed",
    "memory": "Memory-bound, by their share of the memory's speed",
    "overhead": "Overhead-bound, by the share of a call that is left without work",
    "none": "Held up by none of these but by steps of their own, such as copies",
}


def grounds(
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


_NEXT: dict[Bound, str] = {
    "compute": "Less arithmetic or shorter numbers make this faster: fewer "
    "channels, a larger stride, bfloat16 where this machine has units for it.",
    "memory": "Move fewer numbers: compute several layers in one compiled function, or "
    "use shorter numbers.",
    "overhead": "Give each call more work: a larger batch, or the whole model in one "
    "`tf.function`. A faster convolution saves less than half of a call here.",
    "none": "",
}
_QUIETER = "End what else runs on this machine, or give the run more seconds."


def judge(measured: Measurement, problem: Problem) -> Verdict:
    """Say which way is fastest, how near to the limits, and what holds it up."""
    contenders = numbers.contenders(measured)
    if not contenders:
        return Verdict(
            headline="No way of computing this convolution could be timed.",
            because=tuple(untimed(measured)),
            next="Look at how the trials ended, or give the run more seconds.",
        )
    best, *ties = measured.fastest(contenders)
    compared = measured.compare(best.variant, BASELINE)
    won = compared is not None and compared.verdict == "faster"
    found = numbers.speeds(measured, problem)
    speed = next(s for s in found if s.variant == best.variant)
    because = grounds(measured, problem, found)
    if won and compared:
        return Verdict(
            headline=_won(speed, best, ties, compared),
            because=because,
            next=_change(speed, best),
            winner=best.variant,
        )
    noisy = _noisy(measured, [best, *ties])
    none = "Too noisy to say whether any way is" if noisy else _none(measured)
    return Verdict(
        headline=_not_won(none, speed, best, ties, compared),
        because=because,
        next=_QUIETER if noisy else _keep(_of(BASELINE, found) or speed),
    )


def _won(speed: Speed, best: Timing, ties: list[Timing], compared: Comparison) -> str:
    shared = ""
    if ties:
        names = listed(tie.variant for tie in ties)
        shared = f", and is not shown to differ from {names}"
    return (
        f"{quoted(best.variant)} computes this convolution fastest here{shared}: "
        f"{_reached(best, speed)}, {_gain(compared)}."
    )


def _noisy(measured: Measurement, ranked: list[Timing]) -> bool:
    """Whether a way may be faster than the baseline by more than is worth knowing."""
    others = (t.variant for t in ranked if t.variant != BASELINE)
    found = (measured.compare(name, BASELINE) for name in others)
    return any(c is None or c.high > WORTH_KNOWING for c in found)


def _none(measured: Measurement) -> str:
    """That no way is faster, where shorter numbers are: of which ways that is said."""
    short = (name for name, way in WAYS.items() if way.precision != "float32")
    found = [measured.compare(name, BASELINE) for name in short]
    faster = any(c is not None and c.verdict == "faster" for c in found)
    return f"No way{' with all digits of float32' * faster} is shown to be"


def _not_won(
    none: str,
    speed: Speed,
    best: Timing,
    ties: list[Timing],
    compared: Comparison | None,
) -> str:
    name, base = quoted(best.variant), quoted(BASELINE)
    reached = _reached(best, speed)
    if best.variant == BASELINE:
        if ties:
            return f"{none} faster than {base}, which reaches {reached}."
        return f"{base} is the fastest way here: {reached}."
    if compared is None:
        return f"{name} reaches {reached}; no round compares it with {base}."
    return f"{none} faster than {base}: the best, {name}, reaches {_gain(compared)}."


def _gain(compared: Comparison) -> str:
    times = f"{ratio(compared)} {quoted(compared.baseline)}"
    return f"{times} ({interval(compared)})"


def _keep(speed: Speed) -> str:
    return f"Keep {quoted(BASELINE)}. {_NEXT[speed.bound]}".strip()


def _change(speed: Speed, best: Timing) -> str:
    if best.variant == OWN:
        return "Use your own function, and measure it inside your model."
    change = WAYS[best.variant].changes.rstrip(".")
    return f"Use {quoted(best.variant)}: {change}. {_NEXT[speed.bound]}".strip()


def _of(name: str, found: list[Speed]) -> Speed | None:
    return next((speed for speed in found if speed.variant == name), None)


def _reached(timing: Timing, speed: Speed) -> str:
    rate = units.rate_between(timing.rate, timing.low, timing.high, "images")
    return f"{rate}, {gflops(speed.gflops)}"
