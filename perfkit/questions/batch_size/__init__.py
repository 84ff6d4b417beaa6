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
from dataclasses import dataclass, replace
from typing import Annotated

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.plan import Tries, Try
from perfkit.engine.tick import Yielded
from perfkit.errors import BadParameterError
from perfkit.findings.record import Edit, Fact, Verdict
from perfkit.questions.base import Experiment
from perfkit.questions.batch_size import numbers
from perfkit.questions.batch_size.numbers import Knee, Result, Search, name_of
from perfkit.questions.parameters import Choice, Range
from perfkit.questions.shared import batches as shared_batches
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.words import fact, failures, rates_behind, sure_of_all

# The largest batch that can be asked for.
LARGEST = 65_536
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
        return name_of(self.smallest)

    def make_variants(self) -> Mapping[str, Variant]:
        """One variant for each size."""
        trained = functools.partial(shared_batches.training, self.model)
        variants = (
            Variant(
                name_of(size),
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

    def result(self, measured: Measurement) -> Result:
        """What the rounds and the tries show in numbers."""
        limit = 0 if measured.notes.get("gpus") else self.memory * _MB
        return numbers.result(measured, self.batches, limit)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which batch is large enough, and what else the run has shown."""
        return _judge(measured, self.result(measured), self.model)


_LEARNS = "Another batch learns differently: compare the validation loss."
_NOTHING = Verdict(
    headline="No batch size could be timed.",
    next="Check how the trials ended, or give the run more seconds.",
)


def _judge(measured: Measurement, result: Result, model: str) -> Verdict:
    """Say which batch is large enough, by how much, and how large one may be."""
    # What a batch has to fit into.
    room = "the GPU's memory"
    if result.limit:
        room = f"perfkit's limit of {units.size(result.limit)}"
    knee, search = result.knee, result.search
    verdict = _answer(measured, result, knee, model) if knee else _NOTHING
    largest = _largest(search, room) if search else ""
    unknown: tuple[str, ...] = ()
    if search and search.fails and not search.by_limit:
        unknown = (f"Memory may or may not have ended the batch of {search.fails:,}.",)
    return replace(
        verdict,
        warnings=tuple(filter(None, (largest, *verdict.warnings))),
        facts=tuple(_facts(result)),
        because=(*unknown, *failures(measured)),
    )


def _answer(measured: Measurement, result: Result, knee: Knee, model: str) -> Verdict:
    if not knee.firm:
        return _open(knee)
    if knee.size == knee.smallest:
        best = dict(knee.ties).get(knee.best)
        reached = result.rates[0][1].in_words()
        return Verdict(
            headline="Choose the batch that learns best: no larger one is faster.",
            much=f"Batches of {knee.size:,} reach {reached}.",
            sure=sure_of_all(tie for _, tie in knee.ties if tie),
            interval=best.ends if best else "",
        )
    # The smallest that is as fast as the best; the best where that is not known.
    for size in (knee.size, knee.best):
        compared = measured.compare(name_of(size), name_of(knee.smallest))
        if compared and compared.verdict == "faster":
            break
    else:
        return _open(knee)
    is_largest, larger = size == knee.largest, min(4 * size, LARGEST)
    rounds = (trial for trial in measured.trials if not trial.is_try)
    goes_on = is_largest and larger > size and not any(t.has_failed for t in rounds)
    # On processors the search had a limit that no other trial has.
    if not result.limit and result.search and result.search.fails:
        goes_on = goes_on and larger < result.search.fails
    rises = "no larger one was timed" if is_largest else "larger is not faster"
    if is_largest and knee.rising:
        rises = "the rate still rises there"
    ask = f"`perfkit run batch-size --model {model} --largest {larger}` goes on."
    return Verdict(
        headline=f"Train with `batch_size={size}`: {rises}.",
        much=f"This training then runs {compared.as_fast_as} with {knee.smallest:,}"
        f"{rates_behind(measured, compared)}.",
        sure=compared.sure,
        interval=compared.ends,
        edits=(Edit(old=_fit(knee.smallest), new=_fit(size)),),
        warnings=(_LEARNS,),
        next=ask if goes_on else "",
        winner="" if knee.ties else compared.variant,
    )


def _open(knee: Knee) -> Verdict:
    """What is known where noise hides from which size on the rate stops rising."""
    slower = f"Every size below {knee.size:,} is slower; "
    if knee.size == knee.smallest:
        slower = ""
    ties = {size: tie for size, tie in knee.ties if tie}
    size = max(ties, key=lambda n: ties[n].high, default=knee.best)
    compared = ties.get(size)
    limit = units.times(compared.high) if compared and compared.ends else units.UNKNOWN
    return Verdict(
        headline="This run does not show which batch size is large enough.",
        much=f"{slower}{size:,} may be up to {limit} times as fast as {knee.size:,}.",
        sure="not known yet",
    )


def _fit(size: int) -> str:
    return f"model.fit(x, y, batch_size={size})"


def _largest(search: Search, room: str) -> str:
    """How large a batch may be; "" where that is not known."""
    if search.fails is None:
        return f"Batches of {search.fits:,} fit into {room}; no larger one was tried."
    if not search.by_limit:
        return ""
    if not search.fits:
        return f"Not even a batch of {search.fails:,} fits into {room}."
    return f"Batches of {search.fits:,} fit into {room}, and {search.fails:,} do not."


def _facts(result: Result) -> Iterator[Fact]:
    line, search = result.line, result.search
    if line and line.each[0].low > 0:
        for label, cost in zip(
            ("Overhead of a step", "Cost of an example"), line.each, strict=True
        ):
            yield fact(label, cost, units.seconds)
    if search and search.requested:
        label = f"Memory requested by a batch of {search.fits:,}, which fits"
        yield Fact(label, units.size(search.requested))
    if search and search.fails:
        yield Fact(f"How a batch of {search.fails:,} ended", search.reason)
