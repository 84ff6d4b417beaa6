"""Which batch size keeps this machine busy, and which is the largest that fits?

The suspect: a step costs something before its first example, and small batches pay it
often; large ones need more memory than there is.
The test: train fresh networks of one kind at several batch sizes and compare examples
per second. A line through the steps' times tells overhead and cost apart. Then batches
are tried in processes of their own until the largest that fits is known.
"""

import functools
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.plan import Tries, Try
from perfkit.engine.tick import Yielded
from perfkit.errors import BadParameterError
from perfkit.findings.record import Verdict
from perfkit.questions.base import Experiment
from perfkit.questions.batch_size import numbers
from perfkit.questions.batch_size.verdict import LARGEST, judge
from perfkit.questions.parameters import Choice, Range
from perfkit.questions.shared import batches as shared_batches
from perfkit.questions.shared.models import MODELS

_MB = 10**6
# So long each training learns for real.
_LEARNING_S = 1.2


@dataclass(frozen=True, kw_only=True)
class BatchSize(Experiment):
    """Which batch size keeps this machine busy, and which is the largest that fits?"""

    model: Annotated[str, Choice(tuple(MODELS), help="The network to train")] = "dense"
    smallest: Annotated[
        int, Range(1, LARGEST, unit="examples", help="The smallest batch")
    ] = 4
    largest: Annotated[
        int, Range(2, LARGEST, unit="examples", help="The largest batch to time")
    ] = 4096
    sizes: Annotated[
        int, Range(2, 12, help="How many sizes to time, smallest and largest included")
    ] = 6
    memory: Annotated[
        int,
        Range(128, 1_000_000, unit="MB", help="On a CPU, the limit of the search"),
    ] = 256

    name = "batch-size"

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        super().__post_init__()
        if self.smallest >= self.largest:
            raise BadParameterError(
                f"smallest is {self.smallest} and largest is {self.largest}; give a "
                "largest batch above the smallest."
            )

    @property
    def baseline(self) -> str:
        """The smallest batch."""
        return numbers.name_of(self.smallest)

    def make_variants(self) -> Mapping[str, Variant]:
        """One variant for each size."""
        trained = functools.partial(shared_batches.training, self.model)
        variants = (
            Variant(
                numbers.name_of(size),
                functools.partial(trained, size),
                f"{size:,} examples in a batch.",
                self.baseline,
                code=shared_batches.code_of_fit(
                    functools.partial(shared_batches.filled, batch=size)
                ),
            )
            for size in self.batches
        )
        return {variant.name: variant for variant in variants}

    @property
    def batches(self) -> tuple[int, ...]:
        """The sizes: the two ends and powers of two evenly between them."""
        inner = [
            2**power for power in range(17) if self.smallest < 2**power < self.largest
        ]
        count = min(self.sizes - 2, len(inner))
        # The middles of as many even parts.
        middles = [inner[(2 * i + 1) * len(inner) // (2 * count)] for i in range(count)]
        return (self.smallest, *middles, self.largest)

    def prepare(self) -> Iterator[Yielded]:
        """Forecast what a step will hold, from the network's shapes."""
        return shared_batches.prepare(self.model)

    def tries(self, measured: Measurement) -> Tries:
        """Search for the largest batch; then run the usual loop, and learn for real."""
        result = self.result(measured)
        # Elsewhere no program can be given less memory than there is.
        if not result.limit or sys.platform == "linux":
            yield from numbers.tries(self.model, self.largest, result.limit or None)
        for name, sizes in (
            (numbers.UPWARDS, self.batches),
            (numbers.DOWNWARDS, self.batches[::-1]),
        ):
            looped = functools.partial(numbers.as_circulated, self.model, sizes)
            yield Try(name=name, work=looped)
        large_enough = [result.knee.size] if result.knee else []
        for size in sorted({self.smallest, *large_enough, self.largest}):
            learnt = functools.partial(
                shared_batches.learning, self.model, size, self.largest
            )
            yield Try(name=f"learning by {size:,}", work=learnt, seconds=_LEARNING_S)

    def result(self, measured: Measurement) -> numbers.Result:
        """What the rounds and the tries show in numbers."""
        limit = 0 if measured.notes.get("gpus") else self.memory * _MB
        return numbers.result(measured, self.batches, limit)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which batch is large enough, and what else the run has shown."""
        return judge(measured, self.result(measured), self.model)
