"""Which batch size keeps this machine busy, and which is the largest that fits?

The suspect: a step costs something before its first example, and small batches pay it
often; large ones need more memory than there is.
The test: train fresh networks of one kind at several batch sizes and compare examples
per second. A line through the steps' times tells overhead and cost apart. Then batches
are tried in processes of their own until the largest that fits is known.
"""

import functools
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.plan import Tries, Try
from perfkit.engine.statistics import Comparison, Timing
from perfkit.engine.trial import Note, Trial, Yielded
from perfkit.errors import BadParameterError
from perfkit.findings.reading import note_as
from perfkit.findings.record import Edit, Fact, Verdict
from perfkit.questions.base import Choice, Experiment, Range
from perfkit.questions.shared import batches as shared_batches
from perfkit.questions.shared import tf
from perfkit.questions.shared.batches import Costs, fitted
from perfkit.questions.shared.benchmark import without_gpus
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.verdicts import failures, rates_behind, sure_of_all

# The largest batch that can be asked for.
LARGEST = 65_536
_MB = 10**6


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
        int, Range(128, 1_000_000, unit="MB", help="On a CPU, the limit of the search")
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
        """Count the GPUs, which decide what a batch has to fit into, and take none."""
        gpus = tf.config.list_physical_devices("GPU")
        without_gpus()
        yield Note("gpus", len(gpus))

    def tries(self, measured: Measurement) -> Tries:
        """Search for the largest batch that fits."""
        result = self.result(measured)
        # Elsewhere no program can be given less memory than there is.
        if not result.limit or sys.platform == "linux":
            yield from fit_sizes(self.model, self.largest, result.limit or None)

    def result(self, measured: Measurement) -> "Result":
        """What the rounds and the tries show in numbers."""
        timings = ((size, measured.timing(name_of(size))) for size in self.batches)
        rates = tuple((n, timing) for n, timing in timings if timing and timing.low > 0)
        steps = [timing.seconds(size) for size, timing in rates]
        trials = {size: measured.trials_of(name_of(size)) for size in self.batches}
        peaks = {size: shared_batches.peaks(trials[size]) for size in trials}
        return Result(
            rates=rates,
            knee=_knee(measured, rates) if rates else None,
            line=fitted([(1.0, size) for size, _ in rates], steps),
            limit=0 if measured.notes.get("gpus") else self.memory * _MB,
            memory=tuple((n, statistics.median(peaks[n])) for n in peaks if peaks[n]),
            search=read_search(measured.trials),
        )

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which batch is large enough, by how much, and how large one may be."""
        result = self.result(measured)
        knee, search, because = result.knee, result.search, failures(measured)
        verdict = _answer(measured, result, knee, self.model) if knee else _NOTHING
        facts = [
            Fact(f"Memory of a batch of {size:,}, at the peak", units.size(peak))
            for size, peak in result.memory
        ]
        if search and search.fails:
            facts.append(Fact(f"How a batch of {search.fails:,} ended", search.reason))
            if not search.by_limit:
                cause = (
                    f"Memory may or may not have ended the batch of {search.fails:,}."
                )
                because = (cause, *because)
        largest = (_largest(search, result.limit),) if search else ()
        return replace(
            verdict,
            warnings=tuple(filter(None, (*largest, *verdict.warnings))),
            facts=tuple(facts),
            because=because,
        )


def name_of(size: int) -> str:
    """What the variant of a batch size is called."""
    return f"batch {size:,}"


def name_of_try(size: int) -> str:
    """What the try of a batch size is called that the search makes."""
    return f"fits {size:,}?"


@dataclass(frozen=True, kw_only=True)
class Knee:
    """The smallest of the timed sizes that is not shown to be slower than the best.

    The ties are all larger sizes that may be the best, and how they compare with it.
    ``smallest`` and ``largest`` are the ends of all sizes that have a rate.
    """

    size: int
    best: int
    ties: tuple[tuple[int, Comparison | None], ...]
    smallest: int
    largest: int

    @property
    def firm(self) -> bool:
        """Whether it is known well enough: that another is much faster is ruled out."""
        settled = ("no difference shown", "slower")
        return all(tie and tie.verdict in settled for _, tie in self.ties)

    @property
    def rising(self) -> bool:
        """Whether it is the largest size, so that a larger one may be faster."""
        return self.size == self.largest != self.smallest


@dataclass(frozen=True, kw_only=True)
class Search:
    """The largest batch that fits, 0 for none, and the smallest that does not, if any.

    The reason is how that one ended; ``by_limit`` says whether it ran out of memory.
    """

    fits: int
    fails: int | None
    reason: str
    by_limit: bool


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run shows, the smallest size first.

    The line is what a step and an example cost; None with fewer than three sizes. The
    limit is in bytes that a batch may ask for; 0 where the GPU's memory decides. The
    memory is that at the peak, above the start: of the GPU, or else of the process.
    """

    rates: tuple[tuple[int, Timing], ...]
    knee: Knee | None
    line: Costs | None
    limit: int
    memory: tuple[tuple[int, float], ...]
    search: Search | None


def _knee(measured: Measurement, rates: Sequence[tuple[int, Timing]]) -> Knee:
    sizes = {timing.variant: size for size, timing in rates}
    best, *rivals = (sizes[t.variant] for t in measured.fastest(tuple(sizes)))
    size, *larger = sorted({best, *rivals})
    return Knee(
        size=size,
        best=best,
        ties=tuple((n, measured.compare(name_of(n), name_of(size))) for n in larger),
        smallest=rates[0][0],
        largest=rates[-1][0],
    )


# Beyond this nobody trains.
_SEARCH_MOST = 2**24


def step_around(size: int) -> int:
    """How finely a size is found out: a sixteenth of it, or a little less."""
    return 1 << max(0, size.bit_length() - 5)


def search_sizes(first: int, ask: Callable[[int], Try]) -> Tries:
    """Try sizes from ``first`` on until the largest that fits is known to a step.

    A try that completes fits, one that was stopped ends the search.
    """
    size, low, high = max(1, first - first % step_around(first)), 0, _SEARCH_MOST + 1
    while low < size < high:
        trial = yield ask(size)
        if trial.outcome == "stopped":
            return
        low, high = (size, high) if trial.outcome == "completed" else (low, size)
        fine = step_around(low)
        if high > _SEARCH_MOST:
            size = 2 * low
        elif low == 0:
            size = high // 2
        elif high - low <= fine:
            return
        else:
            size = low + max(fine, (high - low) // 2 // fine * fine)


def fit_sizes(name: str, first: int, memory: int | None) -> Tries:
    """Search with a model from ``MODELS``, within ``memory`` bytes if any are given."""

    def ask(size: int) -> Try:
        trained = functools.partial(shared_batches.fitting, name, size)
        return Try(name=name_of_try(size), work=trained, memory=memory)

    return search_sizes(first, ask)


def read_search(trials: Iterable[Trial]) -> Search | None:
    """Read what a search has shown; None where there was none."""
    tries = {
        size: trial
        for trial in trials
        # Its name tells it from a training that was run to learn.
        if (size := note_as(int, trial.notes.get("batch")) or 0) > 0
        and trial.variant == name_of_try(size)
        and trial.outcome != "stopped"
    }
    if not tries:
        return None
    fits = {n: trial for n, trial in tries.items() if trial.outcome == "completed"}
    largest = max(fits, default=0)
    fails = min(tries.keys() - fits.keys(), default=None)
    ended = tries[fails] if fails else None
    return Search(
        fits=largest,
        fails=fails,
        reason=(ended.message or ended.outcome).rstrip(".") if ended else "",
        by_limit=ended is not None and ended.outcome == "out-of-memory",
    )


_LEARNS = "It learns differently: compare the validation loss."
_NOTHING = Verdict(
    headline="No batch size could be timed.",
    next="Check how the trials ended, or give the run more seconds.",
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
    rises, ask = "larger is not faster", ""
    if size == knee.largest:
        rises = (
            "the rate still rises there" if knee.rising else "no larger one was timed"
        )
        # What failed in the rounds was larger.
        if not any(t.has_failed for t in measured.trials if not t.is_try):
            command = f"perfkit run batch-size --model {model} --largest {4 * size}"
            ask = f"`{command}` tries more." if 4 * size <= LARGEST else ""
    return Verdict(
        headline=f"Train with `batch_size={size}`: {rises}.",
        much=f"This training then runs {compared.as_fast_as} with {knee.smallest:,}"
        f"{rates_behind(measured, compared)}.",
        sure=compared.sure,
        interval=compared.ends,
        edits=(Edit(old=_fit(knee.smallest), new=_fit(size)),),
        warnings=(_LEARNS,),
        next=ask,
        winner="" if knee.ties else compared.variant,
    )


def _open(knee: Knee) -> Verdict:
    """What is known where noise hides from which size on the rate stops rising."""
    ties = {size: tie for size, tie in knee.ties if tie}
    size = max(ties, key=lambda n: ties[n].high, default=knee.best)
    compared = ties.get(size)
    limit = units.times(compared.high) if compared and compared.ends else units.UNKNOWN
    return Verdict(
        headline="This run does not show which batch size is large enough.",
        much=f"{size:,} may be up to {limit} times as fast as {knee.size:,}.",
        sure="not known yet",
    )


def _fit(size: int) -> str:
    return f"model.fit(x, y, batch_size={size})"


def _largest(search: Search, limit: int) -> str:
    """How large a batch may be; "" where that is not known."""
    room = f"perfkit's limit of {units.size(limit)}" if limit else "the GPU's memory"
    if search.fails is None:
        return f"Batches of {search.fits:,} fit into {room}; no larger one was tried."
    if not search.by_limit:
        return ""
    if not search.fits:
        return f"Not even a batch of {search.fails:,} fits into {room}."
    return f"Batches of {search.fits:,} fit into {room}, and {search.fails:,} do not."
