"""Do channel counts matter: the same convolution with a few more or fewer of them."""

import functools
import math
from collections.abc import Iterator
from dataclasses import replace

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.statistics import Comparison, Timing, judge, student
from perfkit.engine.tick import REFUSED, Note, Yielded
from perfkit.findings.record import Verdict
from perfkit.questions.convolution.variants import BASELINE, VARIANTS, try_method
from perfkit.questions.convolution.work import Problem, convolving
from perfkit.questions.shared.words import instead, sure_of_all

# As asked, one fewer, one more, and the next count with the same remainder of 8.
_AROUND = (0, -1, 1, 8)


def name_of(problem: Problem) -> str:
    """What the variant with the counts of a problem is called."""
    return f"{problem.channels} in, {problem.filters} out"


def make_variants(problem: Problem) -> dict[str, Variant]:
    """One variant for each pair of counts, the one that was asked for first."""
    return {
        name: Variant(
            name,
            functools.partial(_convolving, pair),
            f"{pair.channels} channels in, {pair.filters} out.",
            name_of(problem),
            code=VARIANTS[BASELINE].code,
        )
        for name, pair in _problems(problem).items()
    }


def prepare(problem: Problem) -> Iterator[Yielded]:
    """Check the answer at every pair of counts, on one image of the batch."""
    counts, refused = {}, {}
    for name, pair in _problems(problem).items():
        yield Note("progress", f"Checking the answer with {name}")
        image = replace(pair, batch=1)
        if reason := try_method(VARIANTS[BASELINE], image, math.inf).why_not:
            refused[name] = reason
        counts[name] = {"in": pair.channels, "out": pair.filters, "flops": pair.flops}
    yield Note("channels", counts)
    yield Note(REFUSED, refused)


def verdict(measured: Measurement, problem: Problem) -> Verdict:
    """Say which counts run at another speed, at equal work, than the one asked for."""
    base, problems = name_of(problem), _problems(problem)
    pairs = (measured.compare(name, base) for name in problems if name != base)
    raw, floor = [*filter(None, pairs)], measured.noise_floor or 1.0
    compared = [
        at_equal_work(c, problems[c.variant].flops / problem.flops, len(raw), floor)
        for c in raw
    ]
    if not compared:
        return Verdict(headline="No two channel counts could be compared.")
    apart = sorted((c for c in compared if not c.is_noise), key=lambda c: c.ratio)
    because = (
        "Speeds are arithmetic per second, since other counts are other amounts of "
        f"work; the intervals are wide enough for all {len(compared)} to hold at once.",
        *(f"{c.variant} runs at {c.interval} the speed of {base}." for c in apart),
    )
    if apart:
        return replace(_differ(measured, problem, apart), because=because)
    speed = _speed(measured, problem).in_words("FLOP")
    if all(c.verdict == "no difference shown" for c in compared):
        return Verdict(
            headline="Choose channel counts for what they learn, not for their speed.",
            much=f"None of {len(compared)} is shown to be faster or slower than "
            f"{base}: {speed}.",
            sure=sure_of_all(compared),
            because=because,
        )
    return Verdict(
        headline=f"Whether any channel count is faster than {base} is not known yet.",
        much=f"{base} reaches {speed}.",
        sure="not known yet",
        because=because,
    )


def _differ(
    measured: Measurement, problem: Problem, apart: list[Comparison]
) -> Verdict:
    """The verdict where counts differ, from those that do, the slowest first."""
    base, pick = name_of(problem), apart[-1]
    headline = f"Choose {pick.variant}: it computes more in its time."
    if pick.verdict != "faster":
        pick = apart[0]
        headline = f"Keep {base}, and avoid {pick.variant}."
    problems = (_problems(problem)[pick.variant], problem)
    speeds = (_speed(measured, case) for case in problems)
    fast = f"at {units.times(pick.ratio)} times the speed of"
    fast = fast if pick.ends else f"{pick.verdict} than"
    alike = [c.variant for c in apart if c.verdict == pick.verdict and c is not pick]
    return Verdict(
        headline=headline,
        much=f"{pick.variant} runs {fast} {base}{instead(*speeds, unit='FLOP')}.",
        sure=pick.sure,
        interval=pick.ends,
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


def _speed(measured: Measurement, problem: Problem) -> Timing:
    """The rate of what was compared, as arithmetic per second."""
    timing = measured.timing(name_of(problem))
    assert timing
    ends = (timing.rate, timing.low, timing.high)
    rate, low, high = (end * problem.flops for end in ends)
    return replace(timing, rate=rate, low=low, high=high)


def _convolving(problem: Problem) -> Iterator[Yielded]:
    return convolving(VARIANTS[BASELINE].call(problem), problem.batch)


def _problems(problem: Problem) -> dict[str, Problem]:
    pairs = (
        (problem.channels + more_in, problem.filters + more_out)
        for more_in in _AROUND
        for more_out in _AROUND
    )
    problems = (replace(problem, channels=c, filters=f) for c, f in pairs if c and f)
    return {name_of(pair): pair for pair in problems}
