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
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Literal

from perfkit import units
from perfkit.engine.measurement import OWN, Measurement, Variant
from perfkit.engine.statistics import Estimate
from perfkit.engine.trial import REFUSED, Note, Yielded
from perfkit.errors import BadParameterError
from perfkit.findings.reading import note_as
from perfkit.findings.record import Fact, Verdict
from perfkit.questions.base import Choice, Experiment, Range, check_fits, select
from perfkit.questions.convolution import variants as ways
from perfkit.questions.convolution.variants import BASELINE, VARIANTS, Method, Problem
from perfkit.questions.shared.verdicts import Race, fact, quoted

# Of images, kernel, stride and padding.
Function = Callable[[Any, Any, int, str], Any]
ARITHMETIC, MEMORY = "arithmetic limit", "memory limit"
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
        str,
        Choice((*ways.GROUPS, *VARIANTS), many=True, help="Groups or single variants"),
    ] = "essential"

    name = "convolution"
    baseline = BASELINE
    choices = ways.CHOICES
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
        images = self.side**2 * self.channels
        largest = max(images, self.problem.out**2 * self.filters)
        choose = "a smaller batch, side or number of channels"
        check_fits("images or result", ways.FLOAT * self.batch * largest, choose)

    @property
    def problem(self) -> Problem:
        """What is convolved."""
        return Problem(**{f.name: getattr(self, f.name) for f in fields(Problem)})

    def make_variants(self) -> Mapping[str, Variant]:
        """Those that are asked for, the baseline first, and the limits."""
        methods = self._methods
        variants = {
            name: Variant(
                name,
                functools.partial(self._convolve, name),
                method.do,
                method.against if method.against in methods else BASELINE,
                code=method.code,
            )
            for name, method in methods.items()
        }
        return variants | {limit.name: limit for limit in self._limits()}

    def prepare(self) -> Iterator[Yielded]:
        """Compare every answer with float64; refuse what is wrong or too slow."""
        refused, overhead = {}, {}
        # The baseline is timed however long it takes.
        longest = math.inf
        for name, method in self._methods.items():
            yield Note("progress", f"Checking the answer of {name}")
            check = ways.try_method(method, self.problem, longest)
            if check.why_not:
                refused[name] = check.why_not
            else:
                overhead[name] = check.overhead
            if name == BASELINE:
                longest = max(ways.LONGEST_S, _OF_BASELINE * check.call_s)
        yield Note("overhead", overhead)
        yield Note(REFUSED, refused)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which way is fastest, how near to the limits, and what holds it up."""
        race = Race(measured, ways.CHOICES, "images", "This convolution")
        if not race.ranked:
            return race.verdict()
        shares = shares_of(measured)
        warnings, first_calls = race.first_calls(self.batch, "calls")
        held_up = (_held_up(n, near) for n, near in shares.items() if "compute" in near)
        verdict = race.verdict(
            warnings=warnings, facts=(*held_up, *first_calls), next=_next(race, shares)
        )
        if race.won or len(race.runners) < 2 or verdict.sure in ("not known yet", ""):
            return verdict
        # What computes something else may be faster, and stands in the same table.
        equals = "no variant with the same result is shown to be faster"
        return replace(verdict, headline=f"Keep {quoted(BASELINE)}: {equals}.")

    @property
    def _methods(self) -> dict[str, Method]:
        function = type(self).function
        mine = {OWN: ways.own_method(function)} if function else {}
        methods = select(self.variants, ways.GROUPS, VARIANTS, BASELINE)
        return {BASELINE: VARIANTS[BASELINE], **mine, **methods}

    def _limits(self) -> Iterator[Variant]:
        """The limits of the machine."""
        product = functools.partial(ways.multiplying, self.problem.flops)
        does = "A large matrix product: the speed limit for direct sums."
        yield Variant(ARITHMETIC, product, does)
        total = functools.partial(ways.moving, self.problem.traffic)
        yield Variant(MEMORY, total, "A large sum: the speed limit of memory.")

    def _convolve(self, name: str) -> Iterator[Yielded]:
        return ways.convolving(self._methods[name].call(self.problem), self.batch)


Bound = Literal["compute", "memory", "overhead", "none", "unknown"]
# How near a variant comes to each limit.
Shares = dict[Bound, Estimate]
# What takes this share of a call's time holds it up.
_HOLDS_UP = 0.5
# What is faster than the memory was measured to be has its numbers in the caches.
_CACHED = 1.1
# What holds a variant up, with its share of a limit.
_HELD_UP: dict[Bound, str] = {
    "compute": "compute-bound: {} of the arithmetic limit",
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


def shares_of(measured: Measurement) -> dict[str, Shares]:
    """How near each variant comes to the limits, as far as known; the fastest first.

    A share is that of what a large matrix product reaches, of the memory's speed, or of
    a call that is left without work.
    """
    timed = (one for one in measured.timings if one.variant in (OWN, *VARIANTS))
    rates = {timing.variant: timing.rate for timing in timed}
    overheads = note_as(dict[str, float | None], measured.notes.get("overhead")) or {}
    result = dict[str, Shares]()
    for name in sorted(rates, key=rates.__getitem__, reverse=True):
        shares = result[name] = Shares()
        limits: dict[Bound, str] = {"compute": ARITHMETIC, "memory": MEMORY}
        for bound, limit in limits.items():
            near = measured.compare(name, limit)
            if near and near.is_judged:
                ends = {"low": near.low, "high": near.high}
                shares[bound] = Estimate(value=near.ratio, **ends)
        if (overhead := overheads.get(name)) is not None:
            shares["overhead"] = Estimate(value=overhead, low=overhead, high=overhead)
    return result


def _next(race: Race, shares: Mapping[str, Shares]) -> str:
    best = race.winner or BASELINE
    if race.is_open or best not in shares:
        return ""
    return _NEXT.get(bound_of(shares[best]), "")


def _held_up(name: str, near: Shares) -> Fact:
    """What holds a variant up, with the share of the limit that says so."""
    bound, label = bound_of(near), f"{quoted(name)} is"
    if (share := near.get(bound)) is None:
        return Fact(label, _HELD_UP[bound])
    row = fact(label, share, units.percent)
    return replace(row, value=_HELD_UP[bound].format(row.value))
