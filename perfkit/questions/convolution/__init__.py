"""Which way of computing a convolution is fastest here, and what holds it up?

The suspect: a convolution is slow because of how it is called or written, not because
of its arithmetic.
The test: convolve the same images in many ways. Each answer is compared with float64
first, and a variant that computes something else is shown and not timed. The same run
measures a matrix product and the memory, because they say how fast it can be.
"""

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Literal

from perfkit import units
from perfkit.engine.measurement import OWN, Measurement, Variant, pay_back
from perfkit.engine.statistics import Comparison, Estimate, Timing, judge, student
from perfkit.engine.tick import REFUSED, Note, Yielded
from perfkit.errors import BadParameterError
from perfkit.findings.reading import note_as
from perfkit.findings.record import Fact, Verdict
from perfkit.questions.base import Experiment
from perfkit.questions.convolution import trials
from perfkit.questions.convolution.variants import (
    BASELINE,
    CHOICES,
    FLOAT,
    GROUPS,
    SHORT,
    VARIANTS,
    Method,
    Problem,
    own_method,
)
from perfkit.questions.parameters import Choice, Range, select
from perfkit.questions.shared.race import Race
from perfkit.questions.shared.words import fact, instead, quoted, sure_of_all

# Of images, kernel, stride and padding.
Function = Callable[[Any, Any, int, str], Any]
ARITHMETIC, BFLOAT16 = "arithmetic limit", "bfloat16 limit"
MEMORY = "memory limit"
_LIMITS = {
    ARITHMETIC: "A large matrix product: the speed limit for direct sums.",
    MEMORY: "A large sum: the speed limit of memory.",
    BFLOAT16: "The large matrix product on bfloat16 numbers.",
}
# Images, kernel and answer of one call; some variants hold them twice over.
_MOST_BYTES = 1_000_000_000
# A call is not timed if it takes more than this many calls of the baseline.
_OF_BASELINE = 2.0


@dataclass(frozen=True, kw_only=True)
class Convolution(Experiment):
    """Which way of computing a convolution is fastest here, and what holds it up?"""

    batch: Annotated[int, Range(1, 64, unit="images", help="Images in a call")] = 8
    side: Annotated[int, Range(4, 256, unit="px", help="Side of an image")] = 56
    channels: Annotated[int, Range(1, 512, help="Input channels")] = 64
    filters: Annotated[int, Range(1, 512, help="Output channels")] = 64
    kernel: Annotated[int, Range(1, 11, unit="px", help="Side of the kernel")] = 3
    stride: Annotated[int, Range(1, 4, unit="px", help="Stride, in pixels")] = 1
    padding: Annotated[
        str, Choice(("same", "valid"), help="Zeros around the image, or none")
    ] = "same"
    variants: Annotated[
        str, Choice((*GROUPS, *VARIANTS), many=True, help="Groups or single variants")
    ] = "essential"
    compare: Annotated[
        str, Choice(("variants", "channels"), help="Variants, or channel counts")
    ] = "variants"

    name = "convolution"
    choices = CHOICES
    # Takes images, shape (batch, side, side, channels), and a kernel, shape (kernel,
    # kernel, channels, filters), NumPy arrays that cannot be written into, the stride,
    # and the padding, "same" or "valid". Returns shape (batch, row, column, filters).
    function: ClassVar[Function | None] = None

    def __post_init__(self) -> None:
        """Refuse what cannot be convolved, before anything is made."""
        super().__post_init__()
        if self.kernel > self.side:
            raise BadParameterError(
                f"kernel is {self.kernel} and side is {self.side}; choose a kernel "
                "that is no larger than the image."
            )
        largest = self.batch * max(
            self.side**2 * self.channels, self.problem.out**2 * self.filters
        )
        if FLOAT * largest > _MOST_BYTES:
            raise BadParameterError(
                f"images or result would take {units.size(FLOAT * largest)}; choose a "
                "smaller batch, side or number of channels."
            )

    @property
    def baseline(self) -> str:
        """The library's function, or of channel counts those that are asked for."""
        return name_of(self.problem) if self._is_sweep else BASELINE

    @property
    def problem(self) -> Problem:
        """What is convolved."""
        return Problem(**{f.name: getattr(self, f.name) for f in fields(Problem)})

    def make_variants(self) -> Mapping[str, Variant]:
        """Those that are asked for, or the channel counts, the baseline first."""
        cases = self._cases
        variants = {
            name: Variant(
                name,
                functools.partial(self._convolve, name),
                f"{name}." if self._is_sweep else method.do,
                method.against if method.against in cases else self.baseline,
                code=method.code,
            )
            for name, (method, _) in cases.items()
        }
        limits = {
            name: Variant(name, work, changes)
            for name, (work, changes) in self._limits.items()
        }
        return variants | limits

    def prepare(self) -> Iterator[Yielded]:
        """Compare every answer with float64; refuse what is wrong or too slow."""
        refused, overhead = {}, {}
        # The baseline is timed however long it takes, and so are all channel counts.
        longest = math.inf
        for name, (method, problem) in self._cases.items():
            yield Note("progress", f"Checking the answer of {name}")
            # Of other counts one image of the batch is enough.
            images = replace(problem, batch=1) if self._is_sweep else problem
            check = trials.try_method(method, images, longest)
            if check.why_not:
                refused[name] = check.why_not
            else:
                overhead[name] = check.overhead
            if name == BASELINE:
                longest = max(trials.LONGEST_S, _OF_BASELINE * check.call_s)
        yield Note("overhead", overhead)
        yield Note(REFUSED, refused)

    def result(self, measured: Measurement) -> "Result":
        """How near each variant comes to the limits, or what channel counts reach."""
        if self._is_sweep:
            return Result(cells=cells_of(measured, self.problem))
        return Result(shares=shares_of(measured, self.problem))

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which way is fastest, how near to the limits, and what holds it up."""
        result = self.result(measured)
        if self._is_sweep:
            return _judge_channels(measured, self.problem, result.cells)
        return _judge_variants(measured, self.problem, result)

    @property
    def _is_sweep(self) -> bool:
        return self.compare == "channels"

    @property
    def _cases(self) -> dict[str, tuple[Method, Problem]]:
        """What is convolved by each variant, and how."""
        if self._is_sweep:
            pairs = pairs_around(self.problem).items()
            return {name: (VARIANTS[BASELINE], pair) for name, pair in pairs}
        function = type(self).function
        mine = {OWN: own_method(function)} if function else {}
        methods = select(self.variants, GROUPS, VARIANTS, BASELINE)
        methods = {BASELINE: VARIANTS[BASELINE], **mine, **methods}
        return {name: (method, self.problem) for name, method in methods.items()}

    @property
    def _limits(self) -> Mapping[str, tuple[Callable[[], Iterator[Yielded]], str]]:
        """The limits of the machine: the work of each, and a sentence about it."""
        if self._is_sweep:
            return {}
        base = VARIANTS[BASELINE]
        flops, traffic = base.flops(self.problem), base.traffic(self.problem)
        product = functools.partial(trials.multiplying, flops)
        total = functools.partial(trials.moving, traffic)
        limits = {
            ARITHMETIC: (product, _LIMITS[ARITHMETIC]),
            MEMORY: (total, _LIMITS[MEMORY]),
        }
        if any(method.precision == "bfloat16" for method, _ in self._cases.values()):
            short = functools.partial(trials.multiplying, flops, "bfloat16")
            limits[BFLOAT16] = short, _LIMITS[BFLOAT16]
        return limits

    def _convolve(self, name: str) -> Iterator[Yielded]:
        method, problem = self._cases[name]
        return trials.convolving(method.call(problem), problem.batch)


# Products that are measured; of other numbers it is not known how fast they can be.
_PRODUCTS = {"float32": ARITHMETIC, "bfloat16": BFLOAT16}

Bound = Literal["compute", "memory", "overhead", "none", "unknown"]
# How near a variant comes to each limit.
Shares = dict[Bound, Estimate]
# What takes this share of a call's time holds it up.
_HOLDS_UP = 0.5
# What is faster than the memory was measured to be has its numbers in the caches.
_CACHED = 1.1
# A first call that takes this many times the baseline's has a row.
_EXPENSIVE = 2
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
# Added above 100 % of the limit, which is the speed of one large product.
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
                ends = (near.ratio, near.low, near.high)
                value, low, high = (work * end for end in ends)
                shares[bound] = Estimate(value=value, low=low, high=high)
        if (overhead := overheads.get(name)) is not None:
            shares["overhead"] = Estimate(value=overhead, low=overhead, high=overhead)
    return result


def _method(name: str) -> Method:
    """What a variant computes; a function of one's own does what the baseline does."""
    return VARIANTS.get(name, VARIANTS[BASELINE])


def _judge_variants(measured: Measurement, problem: Problem, result: Result) -> Verdict:
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
    compared = measured.compare(SHORT, BASELINE)
    if compared and compared.verdict == "faster":
        sentences.append(
            f"If 2 or 3 digits are enough, {quoted(SHORT)} runs "
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


def _judge_channels(
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
