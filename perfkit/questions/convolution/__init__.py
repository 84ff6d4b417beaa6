"""Which way of computing a convolution is fastest here, and what holds it up?

The suspect: a convolution is slow because of how it is called or written, not because
of its arithmetic.
The test: convolve the same images in many ways. Each answer is held against float64
first, and a variant that computes something else is shown and not timed. The speed of a
matrix product and of the memory, measured in the same run, say what is possible.
"""

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar

from perfkit import units
from perfkit.engine.measurement import OWN, Measurement, Variant
from perfkit.engine.tick import REFUSED, Note, Yielded
from perfkit.errors import BadParameterError
from perfkit.findings.record import Verdict
from perfkit.questions.base import Experiment
from perfkit.questions.convolution import trials
from perfkit.questions.convolution.variants import (
    BASELINE,
    FLOAT,
    GROUPS,
    VARIANTS,
    Method,
    Problem,
    own_method,
)
from perfkit.questions.convolution.verdict import (
    ARITHMETIC,
    BFLOAT16,
    CHOICES,
    MEMORY,
    Result,
    cells_of,
    judge_channels,
    judge_variants,
    name_of,
    pairs_around,
    shares_of,
)
from perfkit.questions.parameters import Choice, Range, select
from perfkit.questions.shared.code import code_of

# Of images, kernel, stride and padding.
Function = Callable[[Any, Any, int, str], Any]
# Images, kernel and answer of one call; some variants hold them twice over.
_MOST_BYTES = 1_000_000_000
# A call may take so many times as long as the baseline's.
_OF_BASELINE = 2.0
_PRODUCT = "A large matrix product: the speed limit for direct sums."


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
            name: Variant(name, work, changes, code=code_of(work))
            for name, (work, changes) in self._limits.items()
        }
        return variants | limits

    def prepare(self) -> Iterator[Yielded]:
        """Hold every answer against float64, and refuse what is wrong or too slow."""
        if not self._is_sweep:
            yield Note("roofline", self._roofline())
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

    def result(self, measured: Measurement) -> Result:
        """How near each variant comes to the limits, or what channel counts reach."""
        if self._is_sweep:
            return Result(cells=cells_of(measured, self.problem))
        return Result(shares=shares_of(measured, self.problem))

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which way is fastest, how near to the limits, and what holds it up."""
        result = self.result(measured)
        if self._is_sweep:
            return judge_channels(measured, self.problem, result.cells)
        return judge_variants(measured, self.problem, result)

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
        """What only shows what is possible: its work, and what that is."""
        if self._is_sweep:
            return {}
        base = VARIANTS[BASELINE]
        flops, traffic = base.flops(self.problem), base.traffic(self.problem)
        product = functools.partial(trials.multiplying, flops)
        total = functools.partial(trials.moving, traffic)
        limits = {
            ARITHMETIC: (product, _PRODUCT),
            MEMORY: (total, "A large sum: the speed limit of memory."),
        }
        if any(method.precision == "bfloat16" for method, _ in self._cases.values()):
            short = functools.partial(trials.multiplying, flops, "bfloat16")
            limits[BFLOAT16] = short, "The large matrix product on bfloat16 numbers."
        return limits

    def _convolve(self, name: str) -> Iterator[Yielded]:
        method, problem = self._cases[name]
        return trials.convolving(method.call(problem), problem.batch)

    def _roofline(self) -> dict[str, Any]:
        """What the chart needs: work and traffic of an example, by variant."""
        methods = {name: method for name, (method, _) in self._cases.items()}
        methods |= dict.fromkeys(self._limits, VARIANTS[BASELINE])
        work = {
            name: {
                "flops": method.flops(self.problem),
                "bytes": method.traffic(self.problem),
            }
            for name, method in methods.items()
        }
        arithmetic = [name for name in self._limits if name != MEMORY]
        return {"work": work, "arithmetic": arithmetic, "memory": MEMORY}
