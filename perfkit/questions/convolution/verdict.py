"""What a run of convolutions means: which is fastest, and how near to the limits.

Or, of a sweep over channel counts: whether a few more or fewer of them matter.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from perfkit import units
from perfkit.engine.measurement import OWN, Measurement, pay_back
from perfkit.engine.statistics import Comparison, Estimate, Timing, judge, student
from perfkit.findings.reading import note_as
from perfkit.findings.record import Fact, Verdict
from perfkit.questions.convolution.variants import (
    BASELINE,
    SHORT,
    VARIANTS,
    Method,
    Problem,
)
from perfkit.questions.shared.race import Choice, Race
from perfkit.questions.shared.words import fact, instead, quoted, sure_of_all

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
class Cell:
    """A pair of channel counts, and FLOP per second of a convolution with them."""

    into: int
    out: int
    speed: Timing


@dataclass(frozen=True, kw_only=True)
class Result:
    """How near to the machine's limits each variant comes, or what counts reach.

    The shares are those of what a large matrix product reaches, of the memory's speed,
    and of a call that is left without work, as far as they are known; the variant with
    the most arithmetic per second comes first.
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


def judge_variants(measured: Measurement, problem: Problem, result: Result) -> Verdict:
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


# As asked, one fewer, one more, and the next count with the same remainder of 8.
_AROUND = (0, -1, 1, 8)


def name_of(problem: Problem) -> str:
    """What the variant with the counts of a problem is called."""
    return f"{problem.channels} in, {problem.filters} out"


def pairs_around(problem: Problem) -> dict[str, Problem]:
    """The problem at each pair of counts by its name, the one asked for first."""
    pairs = (
        (problem.channels + more_in, problem.filters + more_out)
        for more_in in _AROUND
        for more_out in _AROUND
    )
    problems = (replace(problem, channels=c, filters=f) for c, f in pairs if c and f)
    return {name_of(pair): pair for pair in problems}


def cells_of(measured: Measurement, problem: Problem) -> dict[str, Cell]:
    """The pairs of counts that were timed, by name."""
    result = dict[str, Cell]()
    for name, pair in pairs_around(problem).items():
        if timing := measured.timing(name):
            ends = (timing.rate, timing.low, timing.high)
            rate, low, high = (end * pair.flops for end in ends)
            speed = replace(timing, rate=rate, low=low, high=high)
            result[name] = Cell(into=pair.channels, out=pair.filters, speed=speed)
    return result


def judge_channels(
    measured: Measurement, problem: Problem, cells: Mapping[str, Cell]
) -> Verdict:
    """Say which counts run at another speed, at equal work, than the one asked for."""
    base, pairs = name_of(problem), pairs_around(problem)
    raw = [c for n in pairs if n != base and (c := measured.compare(n, base))]
    if not raw:
        return Verdict(headline="No two channel counts could be compared.")
    floor = measured.noise_floor or 1.0
    compared = [
        at_equal_work(c, pairs[c.variant].flops / problem.flops, len(raw), floor)
        for c in raw
    ]
    apart = sorted((c for c in compared if not c.is_noise), key=lambda c: c.ratio)
    facts = tuple(
        fact(
            f"{c.variant}: speed relative to {base}",
            Estimate(value=c.ratio, low=c.low, high=c.high),
            units.ratio,
        )
        for c in apart
    )
    because = (
        "Speeds are arithmetic per second, because other counts mean other amounts of "
        f"work. All {len(compared)} intervals hold at once.",
    )
    reaches = cells[base].speed.in_words("FLOP")
    if not apart:
        if any(c.verdict != "no difference shown" for c in compared):
            return Verdict(
                headline="This run does not show whether any channel count is faster "
                f"than {base}.",
                much=f"{base} reaches {reaches}.",
                sure="not known yet",
                because=because,
            )
        return Verdict(
            headline="Choose channel counts for what they learn, not for their speed.",
            much=f"None of {len(compared)} is shown to be faster or slower than "
            f"{base}: {reaches}.",
            sure=sure_of_all(compared),
            because=because,
        )
    pick = apart[-1]
    headline = f"Choose {pick.variant}: it computes more per second."
    if pick.verdict != "faster":
        pick = apart[0]
        headline = f"Keep {base}, and avoid {pick.variant}."
    speeds = (cells[name].speed for name in (pick.variant, base))
    rates = instead(*speeds, unit="FLOP")
    fast = f"at {units.times(pick.ratio)} times the speed of"
    fast = fast if pick.ends else f"{pick.verdict} than"
    alike = [c.variant for c in apart if c.verdict == pick.verdict and c is not pick]
    return Verdict(
        headline=headline,
        much=f"{pick.variant} runs {fast} {base}{rates}.",
        sure=pick.sure,
        interval=pick.ends,
        facts=facts,
        because=because,
        next=f"The same holds for {'; '.join(alike[:3])}." if alike else "",
    )


def at_equal_work(
    compared: Comparison, work: float, among: int, floor: float
) -> Comparison:
    """Make of a ratio of examples per second one of arithmetic per second.

    ``work`` is that of the variant's example over that of the baseline's. Of ``among``
    ratios one differs by chance, so the interval is widened until all of them hold at
    once, at 95 %. The noise floor is a ratio of at least 1.
    """
    freedom = max(1, compared.rounds - 1)
    wider = student(freedom, among) / student(freedom)
    middle = math.log(compared.ratio * work)
    low, high = (
        middle + math.log(end / compared.ratio) * wider
        for end in (compared.low, compared.high)
    )
    return replace(
        compared,
        ratio=math.exp(middle),
        low=math.exp(low),
        high=math.exp(high),
        verdict=judge(low, middle, high, math.log(floor)),
    )
