"""What a run of convolutions means: which is fastest, and how near to the limits."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from perfkit import units
from perfkit.engine.measurement import OWN, Measurement, pay_back
from perfkit.engine.statistics import Estimate
from perfkit.findings.record import Verdict
from perfkit.questions.convolution.variants import (
    BASELINE,
    LIGHTER,
    SHORT,
    VARIANTS,
    Method,
)
from perfkit.questions.convolution.work import Problem
from perfkit.questions.shared.race import Choice, Race
from perfkit.questions.shared.words import quoted

ARITHMETIC, BFLOAT16 = "arithmetic limit", "bfloat16 limit"
MEMORY = "memory limit"
# Products that are measured; of other numbers it is not known how fast they can be.
_PRODUCTS = {"float32": ARITHMETIC, "bfloat16": BFLOAT16}

Bound = Literal["compute", "memory", "overhead", "none", "unknown"]
# What takes this share of a call's time holds it up.
_HOLDS_UP = 0.5
# What is faster than the memory was measured to be has its numbers in the caches.
_CACHED = 1.1


def bound_of(shares: Mapping[Bound, Estimate]) -> Bound:
    """What holds a variant up, as far as one thing does.

    Args:
        shares: Of what a large matrix product reaches, of the memory's speed, and of a
            call that is left without work, as far as they are known.
    """
    values = {bound: share.value for bound, share in shares.items()}
    if values.get("memory", 0.0) > _CACHED:
        del values["memory"]
    may = any(shares[bound].high >= _HOLDS_UP for bound in values)
    values = {b: value for b, value in values.items() if value >= _HOLDS_UP}
    if not values:
        return "unknown" if may else "none"
    largest = max(values, key=values.__getitem__)
    return largest if shares[largest].low >= _HOLDS_UP else "unknown"


def shares_of(
    measured: Measurement, problem: Problem
) -> dict[str, dict[Bound, Estimate]]:
    """How near each comes to the limits, the most arithmetic per second first."""
    speeds = {
        timing.variant: timing.rate * _method(timing.variant).flops(problem)
        for timing in measured.timings
        if timing.variant in (OWN, *VARIANTS)
    }
    names = sorted(speeds, key=speeds.__getitem__, reverse=True)
    return {name: _shares(measured, problem, name) for name in names}


def _shares(
    measured: Measurement, problem: Problem, name: str
) -> dict[Bound, Estimate]:
    method, base = _method(name), VARIANTS[BASELINE]
    arithmetic = _PRODUCTS.get(method.precision, "")
    # A limit's rate counts what an example of the baseline takes.
    limits: dict[Bound, tuple[str, float]] = {
        "compute": (arithmetic, method.flops(problem) / base.flops(problem)),
        "memory": (MEMORY, method.traffic(problem) / base.traffic(problem)),
    }
    shares: dict[Bound, Estimate] = {}
    for bound, (limit, work) in limits.items():
        near = measured.compare(name, limit)
        if near and near.is_judged:
            value, low, high = (work * end for end in (near.ratio, near.low, near.high))
            shares[bound] = Estimate(value=value, low=low, high=high)
    overhead = measured.notes.get("overhead", {}).get(name)
    if overhead is not None:
        shares["overhead"] = Estimate(value=overhead, low=overhead, high=overhead)
    return shares


def _method(name: str) -> Method:
    """What a variant computes; a function of one's own does what the baseline does."""
    return VARIANTS.get(name, VARIANTS[BASELINE])


CHOICES = {
    method.name: Choice(method.do, functools.partial(getattr, method, "code"))
    for method in VARIANTS.values()
    if method.do
}
CHOICES[OWN] = Choice("Use your own function.", "yours(images, kernel, stride, pad)")
# A first call is worth a sentence from so many times that of the baseline on.
_EXPENSIVE = 2
_HELD_UP: dict[Bound, str] = {
    "compute": "Compute-bound, by their share of the matrix product's speed",
    "memory": "Memory-bound, by their share of the memory's speed",
    "overhead": "Overhead-bound, by the share of a call that is left without work",
    "none": "Held up by none of these but by steps of their own, such as copies",
    "unknown": "What holds these up is not known yet",
}
_NEXT: dict[Bound, str] = {
    "compute": "It is compute-bound: less arithmetic makes it faster, such as fewer "
    "channels or a larger stride.",
    "memory": "It is memory-bound: compute several layers in one compiled function.",
    "overhead": "It is overhead-bound: give each call more work, by a larger batch or "
    "by the whole model in one `tf.function`.",
}


def judge(measured: Measurement, problem: Problem) -> Verdict:
    """Say which way is fastest, how near to the limits, and what holds it up."""
    race = Race(measured, CHOICES, "images", "This convolution")
    if not race.ranked:
        return race.verdict()
    shares = shares_of(measured, problem)
    first_calls = {name: _first_call(measured, problem, name) for name in CHOICES}
    first_call = first_calls.pop(race.winner, "")
    verdict = race.verdict(
        warnings=(first_call,) if first_call else (),
        because=(
            *_limits(measured, problem),
            *_held_up(shares),
            *filter(None, first_calls.values()),
            *_other_work(measured, problem),
        ),
        next=_next(measured, race, shares),
    )
    if race.won or verdict.sure in ("not known yet", ""):
        return verdict
    # What computes something else may be faster, and stands in the same table.
    return replace(
        verdict,
        headline=f"Keep {quoted(BASELINE)}: nothing that computes the same is shown "
        "to be faster.",
    )


def _next(
    measured: Measurement, race: Race, shares: dict[str, dict[Bound, Estimate]]
) -> str:
    if race.winner == OWN:
        return "Measure it inside your model."
    best = race.winner or BASELINE
    if race.is_open or best not in shares:
        return ""
    sentences = [_NEXT.get(bound_of(shares[best]), "")]
    for name in SHORT:
        compared = measured.compare(name, BASELINE)
        if compared and compared.verdict == "faster":
            sentences.append(
                f"Where 2 or 3 digits are enough, {quoted(name)} runs "
                f"{compared.as_fast_as} {quoted(BASELINE)}."
            )
    return " ".join(filter(None, sentences))


def _limits(measured: Measurement, problem: Problem) -> Iterator[str]:
    """What the machine can do, and where this convolution lies between its limits."""
    peak, memory = measured.timing(ARITHMETIC), measured.timing(MEMORY)
    if not (peak and memory and peak.is_known and memory.is_known):
        return
    method = VARIANTS[BASELINE]
    flops, traffic = method.flops(problem), method.traffic(problem)
    fast, wide = peak.rate * flops, memory.rate * traffic
    intensity, ridge = flops / traffic, fast / wide
    limit = "arithmetic" if intensity > ridge else "memory"
    yield (
        f"In this run a large matrix product reached {units.rate(fast, 'FLOP')}, and "
        f"memory {units.size(wide)}/s. This convolution has "
        f"{units.significant(intensity)} multiplications and additions for each byte; "
        f"from {units.significant(ridge)} on arithmetic is the limit, so of the two it "
        f"is {limit}."
    )


def _held_up(shares: dict[str, dict[Bound, Estimate]]) -> Iterator[str]:
    """The variants by what holds them up, each with the share that says so."""
    for bound, words in _HELD_UP.items():
        names = [
            n for n, s in shares.items() if "compute" in s and bound_of(s) == bound
        ]
        if names:
            listed = ", ".join(f"{quoted(n)}{_share(n, bound, shares)}" for n in names)
            yield f"{words}: {listed}."
        if any(shares[n][bound].low > 1 for n in names if bound in shares[n]):
            yield (
                "More than 100 %: a limit is the speed of one large piece of work. "
                "Work of another shape may suit this machine better, and Winograd and "
                "FFT need fewer operations than are counted."
            )


def _share(name: str, bound: Bound, shares: dict[str, dict[Bound, Estimate]]) -> str:
    """The share that says what holds a variant up; "" where none does."""
    share = shares[name].get(bound)
    if share is None:
        return ""
    value, *ends = map(units.percent, (share.value, share.low, share.high))
    interval = f" ({' to '.join(ends)})" if share.low < share.high else ""
    short = bound == "compute" and name == SHORT[0]
    return f" {value}{interval}{' of that in bfloat16' if short else ''}"


def _first_call(measured: Measurement, problem: Problem, name: str) -> str:
    """When an expensive first call has paid back; "" where it is not expensive."""
    base, timing = measured.timing(BASELINE), measured.timing(name)
    back = pay_back(measured, name, BASELINE)
    if name == BASELINE or not base or not timing or not back:
        return ""
    takes = units.seconds(timing.first_call_s)
    call = f"The first call of {quoted(name)} takes {takes}"
    if back.paying == "pays back":
        return f"{call}: it pays back after {back.steps(problem.batch, 'calls')}."
    expensive = timing.first_call_s > _EXPENSIVE * base.first_call_s
    return f"{call}, which is not shown to pay back." if expensive else ""


def _other_work(measured: Measurement, problem: Problem) -> Iterator[str]:
    """Yield a sentence on each timed variant that computes something else."""
    for name in (*SHORT, *LIGHTER):
        if measured.timing(name) is None:
            continue
        part = VARIANTS[name].flops(problem) / VARIANTS[BASELINE].flops(problem)
        remark = "is right to 2 or 3 digits only"
        if name in LIGHTER:
            remark = f"is another layer with {units.percent(part)} of the arithmetic"
        yield f"{quoted(name)} {remark}, so it does not compete."
