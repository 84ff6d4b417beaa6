"""What a run of convolutions means: which is fastest, and how near to the limits."""

import functools
from dataclasses import dataclass, field, replace
from typing import Literal

from perfkit import units
from perfkit.engine.measurement import OWN, Measurement, pay_back
from perfkit.engine.statistics import Estimate
from perfkit.findings.reading import note_as
from perfkit.findings.record import Fact, Verdict
from perfkit.questions.convolution.channels import Cell
from perfkit.questions.convolution.variants import BASELINE, SHORT, VARIANTS, Method
from perfkit.questions.convolution.work import Problem
from perfkit.questions.shared.race import Choice, Race
from perfkit.questions.shared.words import fact, quoted

ARITHMETIC, BFLOAT16 = "arithmetic limit", "bfloat16 limit"
MEMORY = "memory limit"
# Products that are measured; of other numbers it is not known how fast they can be.
_PRODUCTS = {"float32": ARITHMETIC, "bfloat16": BFLOAT16}

Bound = Literal["compute", "memory", "overhead", "none", "unknown"]
# How near a variant comes to each limit.
Shares = dict[Bound, Estimate]
# What takes this share of a call's time holds it up.
_HOLDS_UP = 0.5
# What is faster than the memory was measured to be has its numbers in the caches.
_CACHED = 1.1
# A first call is worth telling from so many times that of the baseline on.
_EXPENSIVE = 2

CHOICES = {
    method.name: Choice(method.do, functools.partial(getattr, method, "code"))
    for method in VARIANTS.values()
    if not method.excluded
}
CHOICES[OWN] = Choice("Use your own function.", "yours(images, kernel, stride, pad)")
# What holds a variant up, with its share of a limit.
_HELD_UP: dict[Bound, str] = {
    "compute": "compute-bound: {} of the {}",
    "memory": "memory-bound: {} of the memory limit",
    "overhead": "overhead-bound: {} of a call does no work",
    "none": "limited by extra work, such as copies",
    "unknown": "not known yet",
}
_NEXT: dict[Bound, str] = {
    "compute": "It is compute-bound, so give it less arithmetic: fewer channels, or a "
    "larger stride.",
    "memory": "It is memory-bound: compile several layers into one function.",
    "overhead": "It is overhead-bound, so give each call more work: a larger batch, or "
    "the whole model in one `tf.function`.",
}
# Of more than 100 % of a limit, which is the speed of one large piece of work.
_ABOVE = "; Winograd and FFT need fewer operations than counted"


@dataclass(frozen=True, kw_only=True)
class Result:
    """How near to the machine's limits each variant comes, or what counts reach.

    Attributes:
        shares: Of each variant its share of what a large matrix product reaches, of the
            memory's speed, and the share of a call that is left without work, as far as
            they are known; the most arithmetic per second first.
        cells: Each pair of channel counts, by name.
    """

    shares: dict[str, Shares] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)


def bound_of(shares: Shares) -> Bound:
    """What holds a variant up, as far as one thing does."""
    values = {bound: share.value for bound, share in shares.items()}
    if values.get("memory", 0.0) > _CACHED:
        del values["memory"]
    may = any(shares[bound].high >= _HOLDS_UP for bound in values)
    values = {b: value for b, value in values.items() if value >= _HOLDS_UP}
    if not values:
        return "unknown" if may else "none"
    largest = max(values, key=values.__getitem__)
    return largest if shares[largest].low >= _HOLDS_UP else "unknown"


def shares_of(measured: Measurement, problem: Problem) -> dict[str, Shares]:
    """How near each comes to the limits, the most arithmetic per second first."""
    speeds = {
        timing.variant: timing.rate * _method(timing.variant).flops(problem)
        for timing in measured.timings
        if timing.variant in (OWN, *VARIANTS)
    }
    overheads = note_as(dict[str, float | None], measured.notes.get("overhead")) or {}
    result = dict[str, Shares]()
    for name in sorted(speeds, key=speeds.__getitem__, reverse=True):
        method, base = _method(name), VARIANTS[BASELINE]
        arithmetic = _PRODUCTS.get(method.precision, "")
        # A limit's rate counts what an example of the baseline takes.
        limits: dict[Bound, tuple[str, float]] = {
            "compute": (arithmetic, method.flops(problem) / base.flops(problem)),
            "memory": (MEMORY, method.traffic(problem) / base.traffic(problem)),
        }
        shares = result[name] = Shares()
        for bound, (limit, work) in limits.items():
            near = measured.compare(name, limit)
            if near and near.is_judged:
                ends = (work * end for end in (near.ratio, near.low, near.high))
                value, low, high = ends
                shares[bound] = Estimate(value=value, low=low, high=high)
        if (overhead := overheads.get(name)) is not None:
            shares["overhead"] = Estimate(value=overhead, low=overhead, high=overhead)
    return result


def _method(name: str) -> Method:
    """What a variant computes; a function of one's own does what the baseline does."""
    return VARIANTS.get(name, VARIANTS[BASELINE])


def judge(measured: Measurement, problem: Problem, result: Result) -> Verdict:
    """Say which way is fastest, how near to the limits, and what holds it up."""
    race = Race(measured, CHOICES, "images", "This convolution")
    if not race.ranked:
        return race.verdict()
    first_calls = {name: _first_call(measured, problem, name) for name in CHOICES}
    winners = first_calls.pop(race.winner, "")
    warning = f"The first call of {quoted(race.winner)} takes {winners}."
    verdict = replace(
        race.verdict(
            warnings=(warning,) if winners else (),
            next=_next(measured, race, result),
        ),
        facts=(
            *(
                _held_up(n, near)
                for n, near in result.shares.items()
                if "compute" in near
            ),
            *(Fact(f"First call, {quoted(n)}", s) for n, s in first_calls.items() if s),
            *(
                Fact(f"{quoted(method.name)} does not compete", method.excluded)
                for method in VARIANTS.values()
                if method.excluded and measured.timing(method.name)
            ),
        ),
    )
    if race.won or verdict.sure in ("not known yet", ""):
        return verdict
    # What computes something else may be faster, and stands in the same table.
    equals = f"Keep {quoted(BASELINE)}: no variant with the same result is shown to be"
    return replace(verdict, headline=f"{equals} faster.")


def _next(measured: Measurement, race: Race, result: Result) -> str:
    if race.winner == OWN:
        return "Measure it inside your model."
    best = race.winner or BASELINE
    if race.is_open or best not in result.shares:
        return ""
    sentences = [_NEXT.get(bound_of(result.shares[best]), "")]
    for name in SHORT:
        compared = measured.compare(name, BASELINE)
        if compared and compared.verdict == "faster":
            sentences.append(
                f"If 2 or 3 digits are enough, {quoted(name)} runs "
                f"{compared.as_fast_as} {quoted(BASELINE)}."
            )
    return " ".join(filter(None, sentences))


def _held_up(name: str, near: Shares) -> Fact:
    """What holds a variant up, with the share of the limit that says so."""
    bound, label = bound_of(near), f"{quoted(name)} is"
    share, limit = near.get(bound), _PRODUCTS.get(_method(name).precision, "")
    if share is None:
        return Fact(label, _HELD_UP[bound])
    row = fact(label, share, units.percent)
    above = _ABOVE if bound == "compute" and share.low > 1 else ""
    return replace(row, value=_HELD_UP[bound].format(row.value, limit) + above)


def _first_call(measured: Measurement, problem: Problem, name: str) -> str:
    """When an expensive first call has paid back; "" where it is not expensive."""
    base, timing = measured.timing(BASELINE), measured.timing(name)
    back = pay_back(measured, name, BASELINE)
    if name == BASELINE or not base or not timing or not back:
        return ""
    takes = units.seconds(timing.first_call_s)
    if back.paying == "pays back":
        return f"{takes}: it pays back after {back.steps(problem.batch, 'calls')}"
    expensive = timing.first_call_s > _EXPENSIVE * base.first_call_s
    return f"{takes}, not shown to pay back" if expensive else ""
