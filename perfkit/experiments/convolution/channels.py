"""Do channel counts matter: the same convolution with a few more or fewer of them."""

import functools
import math
from collections.abc import Iterator
from dataclasses import replace

from perfkit import units
from perfkit.experiments.convolution import answers
from perfkit.experiments.convolution.problem import Problem, convolving
from perfkit.experiments.convolution.variants import BASELINE, VARIANTS
from perfkit.experiments.shared.words import instead, sure_of_all
from perfkit.findings.record import Verdict
from perfkit.measure import statistics
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.statistics import Comparison, Timing
from perfkit.measure.tick import REFUSED, Note, Yielded

# One fewer, as asked, one more, and the next count with the same remainder of 8.
_AROUND = (0, -1, 1, 8)
_TAIL = 0.025


def name_of(problem: Problem) -> str:
    """What the variant with the counts of a problem is called."""
    return f"{problem.channels} in, {problem.filters} out"


def make_variants(problem: Problem) -> dict[str, Variant]:
    """One variant for each pair of counts, the one that was asked for first."""
    return {
        name: Variant(
            name,
            functools.partial(_convolving, one),
            f"{one.channels} channels in, {one.filters} out.",
            name_of(problem),
            code=VARIANTS[BASELINE].code,
        )
        for name, one in _problems(problem).items()
    }


def prepare(problem: Problem) -> Iterator[Yielded]:
    """Check the answer at every pair of counts, on one image of the batch."""
    channels, refused = {}, {}
    for name, one in _problems(problem).items():
        yield Note("progress", f"Checking the answer with {name}")
        image = replace(one, batch=1)
        if why := answers.try_method(VARIANTS[BASELINE], image, math.inf).why_not:
            refused[name] = why
        channels[name] = {"in": one.channels, "out": one.filters, "flops": one.flops}
    yield Note("channels", channels)
    yield Note(REFUSED, refused)


def judge(measured: Measurement, problem: Problem) -> Verdict:
    """Say which counts run at another speed, at equal work, than the one asked for."""
    base, found = name_of(problem), _compared(measured, problem)
    if not found:
        return Verdict(headline="No two channel counts could be compared.")
    shown = sorted((c for c in found if not c.is_noise), key=lambda c: c.ratio)
    because = (
        "Speeds are arithmetic per second, since other counts are other amounts of "
        f"work; the intervals are wide enough for all {len(found)} to hold at once.",
        *(f"{c.variant} runs at {c.interval} the speed of {base}." for c in shown),
    )
    if shown:
        return _differ(measured, problem, shown, because)
    if all(c.verdict == "no difference shown" for c in found):
        return Verdict(
            headline="Choose channel counts for what they learn, not for their speed.",
            much=f"None of {len(found)} is shown to be faster or slower than {base}: "
            f"{_speed(measured, problem).in_words('FLOP')}.",
            sure=sure_of_all(found),
            because=because,
        )
    return Verdict(
        headline=f"Whether any channel count is faster than {base} is not known yet.",
        much=f"{base} reaches {_speed(measured, problem).in_words('FLOP')}.",
        sure="not known yet",
        because=because,
    )


def _differ(
    measured: Measurement,
    problem: Problem,
    shown: list[Comparison],
    because: tuple[str, ...],
) -> Verdict:
    """The verdict where counts differ, from those that do, the slowest first."""
    base, best = name_of(problem), shown[-1]
    if best.verdict == "faster":
        told, headline = best, f"Choose {best.variant}: it computes more in its time."
    else:
        told, headline = shown[0], f"Keep {base}, and avoid {shown[0].variant}."
    both = (_problems(problem)[told.variant], problem)
    speeds = (_speed(measured, each) for each in both)
    fast = f"at {units.times(told.ratio)} times the speed of"
    fast = fast if told.ends else f"{told.verdict} than"
    others = [c.variant for c in shown if c.verdict == told.verdict and c is not told]
    return Verdict(
        headline=headline,
        much=f"{told.variant} runs {fast} {base}{instead(*speeds, unit='FLOP')}.",
        sure=told.sure,
        interval=told.ends,
        because=because,
        next=f"The same holds for {'; '.join(others[:3])}." if others else "",
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
    # Not with the module: listing experiments would take most of a second longer.
    from scipy import special

    freedom = max(1, compared.rounds - 1)
    one, all_of_them = special.stdtrit(freedom, (1 - _TAIL, 1 - _TAIL / among))
    middle = math.log(compared.ratio * work)
    low, high = (
        middle + math.log(end / compared.ratio) * float(all_of_them / one)
        for end in (compared.low, compared.high)
    )
    return replace(
        compared,
        ratio=math.exp(middle),
        low=math.exp(low),
        high=math.exp(high),
        verdict=statistics.judge(low, middle, high, math.log(floor)),
    )


def _compared(measured: Measurement, problem: Problem) -> list[Comparison]:
    base, problems = name_of(problem), _problems(problem)
    others = (measured.compare(name, base) for name in problems if name != base)
    known = [*filter(None, others)]
    floor = measured.noise_floor or 1.0
    return [
        at_equal_work(c, problems[c.variant].flops / problem.flops, len(known), floor)
        for c in known
    ]


def _speed(measured: Measurement, problem: Problem) -> Timing:
    """The rate of what was compared, as arithmetic per second."""
    timing = measured.timing(name_of(problem))
    assert timing
    rate, low, high = (
        end * problem.flops for end in (timing.rate, timing.low, timing.high)
    )
    return replace(timing, rate=rate, low=low, high=high)


def _convolving(problem: Problem) -> Iterator[Yielded]:
    return convolving(VARIANTS[BASELINE].call(problem), problem.batch)


def _problems(problem: Problem) -> dict[str, Problem]:
    counts = (
        (problem.channels + more, problem.filters + others)
        for more in _AROUND
        for others in _AROUND
    )
    made = (replace(problem, channels=c, filters=f) for c, f in counts if c and f)
    return {name_of(one): one for one in made}
