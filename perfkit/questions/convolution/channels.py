"""Do channel counts matter: the same convolution with a few more or fewer of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from perfkit import units
from perfkit.engine.measurement import Measurement
from perfkit.engine.statistics import Comparison, Estimate, Timing, judge, student
from perfkit.findings.record import Verdict
from perfkit.questions.convolution.work import Problem
from perfkit.questions.shared.words import fact, instead, sure_of_all

# As asked, one fewer, one more, and the next count with the same remainder of 8.
_AROUND = (0, -1, 1, 8)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A pair of channel counts, and FLOP per second of a convolution with them."""

    into: int
    out: int
    speed: Timing


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


def cells(measured: Measurement, problem: Problem) -> dict[str, Cell]:
    """The pairs of counts that were timed, by name."""
    result = dict[str, Cell]()
    for name, pair in pairs_around(problem).items():
        if timing := measured.timing(name):
            ends = (timing.rate, timing.low, timing.high)
            rate, low, high = (end * pair.flops for end in ends)
            speed = replace(timing, rate=rate, low=low, high=high)
            result[name] = Cell(into=pair.channels, out=pair.filters, speed=speed)
    return result


def verdict(
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

    Args:
        compared: The ratio of examples per second.
        work: Of the variant's example, over that of the baseline's.
        among: How many such ratios there are: of many one differs by chance, so
            the interval is widened until all of them hold at once, at 95 %.
        floor: The noise floor, a ratio of at least 1.
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
