"""What a run over batch sizes shows in numbers, and what its trials told."""

import functools
import itertools
import re
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from perfkit.engine.measurement import Measurement
from perfkit.engine.plan import Tries, Try
from perfkit.engine.statistics import Comparison, Estimate, Sure, Timing, student
from perfkit.engine.tick import READY, Note, Yielded
from perfkit.engine.trial import Trial
from perfkit.findings.reading import note_as
from perfkit.questions.shared import batches
from perfkit.questions.shared.batches import Forecast
from perfkit.questions.shared.loops import loss_function
from perfkit.questions.shared.models import MODELS

# A finding's file holds the names of its variants and of its tries, and no sizes.
_NAMES = re.compile(r"(batch|fits) ([1-9][\d,]{0,11})\??")
# Two sizes always lie on a line.
_FEWEST = 3
# No step time is known better than this share of it.
_BEST_KNOWN = 1e-3
_BENDS = 0.10
# A file may hold any number; what no training has is not drawn.
_LARGEST_LOSS = 1e6


def name_of(size: int) -> str:
    """What the variant of a batch size is called."""
    return f"batch {size:,}"


def size_of(name: str, word: str = "batch") -> int:
    """The batch size in the name of a variant, or of a try; 0 where there is none."""
    match = _NAMES.fullmatch(name)
    return int(match[2].replace(",", "")) if match and match[1] == word else 0


@dataclass(frozen=True, kw_only=True)
class Line:
    """A step's seconds as ``overhead + size * cost``.

    It bends at the sizes whose step takes so many times the line's seconds.
    """

    overhead: Estimate
    cost: Estimate
    bends: tuple[tuple[int, float], ...]

    @property
    def shows_overhead(self) -> bool:
        """Whether there is any for sure."""
        return self.overhead.low > 0


@dataclass(frozen=True, kw_only=True)
class Knee:
    """The smallest of the timed sizes that is not shown to be slower than the best.

    ``tied`` is how each other size that may be the best compares with that size.
    """

    size: int
    best: int
    tied: dict[int, Comparison | None]
    sizes: tuple[int, ...]

    @property
    def firm(self) -> bool:
        """Whether it is known well enough: that another is much faster is ruled out."""
        settled = ("no difference shown", "slower")
        return all(tie and tie.verdict in settled for tie in self.tied.values())

    @property
    def sure(self) -> Sure:
        """How sure that is, of the one that is known least well."""
        levels = [tie.sure if tie else "not known yet" for tie in self.tied.values()]
        return "sure" if all(level == "sure" for level in levels) else "likely"

    @property
    def rising(self) -> bool:
        """Whether it is the largest size, so that a larger one may be faster."""
        return self.size == self.sizes[-1] != self.sizes[0]


def sized(timings: Sequence[Timing]) -> dict[int, Timing]:
    """The timings of batch sizes, by size and in its order."""
    by_size = {size_of(timing.variant): timing for timing in timings if timing.low > 0}
    return {size: by_size[size] for size in sorted(by_size) if size}


def step_times(timings: Sequence[Timing]) -> dict[int, Estimate]:
    """Seconds of a step at each size, in the order of sizes."""
    return {size: timing.seconds(size) for size, timing in sized(timings).items()}


def line(steps: Mapping[int, Estimate], floor: float | None = None) -> Line | None:
    """Fit the line by weighted least squares; None with fewer than three sizes.

    The weights come from each size's own interval. Where the line misses by more than
    those allow, its own intervals get wider by as much. A size that is off the line by
    less than the noise floor, a ratio, is not said to be off it.
    """
    if len(steps) < _FEWEST:
        return None
    sizes, seconds = np.array([(float(n), step.value) for n, step in steps.items()]).T
    half = np.array([(step.high / step.low) ** 0.5 - 1 for step in steps.values()])
    weights = 1 / (seconds * np.maximum(half / 2, _BEST_KNOWN))
    coefficients, spread = np.polyfit(sizes, seconds, 1, w=weights, cov="unscaled")
    expected = np.polyval(coefficients, sizes)
    misses = weights * (seconds - expected)
    freedom = len(steps) - 2
    scale = max(1.0, float(misses @ misses) / freedom)
    reach = student(freedom) * np.sqrt(np.diag(spread) * scale)
    cost, overhead = (
        Estimate(value=float(v), low=float(v - r), high=float(v + r))
        for v, r in zip(coefficients, reach, strict=True)
    )
    threshold = max(_BENDS, (floor or 1.0) - 1)
    bends = tuple(
        (size, step.value / at)
        for (size, step), at in zip(steps.items(), expected.tolist(), strict=True)
        # Off by more than its interval and the threshold; below 0 there is no step.
        if at <= 0
        or (not step.low <= at <= step.high and abs(step.value / at - 1) > threshold)
    )
    return Line(overhead=overhead, cost=cost, bends=bends)


def knee(measured: Measurement) -> Knee | None:
    """Find it; None while no size has a rate."""
    timings = sized(measured.timings)
    if not timings:
        return None
    ranked = measured.fastest(tuple(timing.variant for timing in timings.values()))
    best, *_ = sizes = [size_of(timing.variant) for timing in ranked]
    size, *larger = sorted(sizes)
    tied = {n: measured.compare(name_of(n), name_of(size)) for n in larger}
    return Knee(size=size, best=best, tied=tied, sizes=tuple(timings))


@dataclass(frozen=True, kw_only=True)
class Curve:
    """How the loss of held-out examples fell in one training.

    At each look, the first before any step, there are so many samples learnt from and
    seconds of training.
    """

    batch: int
    samples: tuple[int, ...]
    seconds: tuple[float, ...]
    losses: tuple[float, ...]


def forecast(notes: Mapping[str, Any]) -> Forecast | None:
    """What was forecast from shapes."""
    bytes_ = note_as(Forecast, notes.get("forecast"))
    return bytes_ if bytes_ and min(astuple(bytes_)) >= 0 else None


def memory(trials: Iterable[Trial], kind: str = "resident") -> dict[int, float]:
    """Bytes above the start at each batch size, the median over its trials."""
    by_size = dict[int, list[int]]()
    for trial in trials:
        size, amounts = size_of(trial.variant), _read_memory(trial)
        if size and amounts.get(kind, -1) >= 0:
            by_size.setdefault(size, []).append(amounts[kind])
    return {size: statistics.median(by_size[size]) for size in sorted(by_size)}


def asked_for(trials: Iterable[Trial], size: int) -> int:
    """Bytes that a try with a batch of ``size`` had asked for; 0 if none told."""
    tries = (trial for trial in trials if trial.is_try)
    notes = (_read_memory(t) for t in tries if t.notes.get("batch") == size)
    requests = (amounts.get("gpu_peak", amounts.get("data", 0)) for amounts in notes)
    return next((request for request in requests if request > 0), 0)


def _read_memory(trial: Trial) -> dict[str, int]:
    return note_as(dict[str, int], trial.notes.get("memory")) or {}


# The loop over batch sizes that is in circulation, run as it stands: one network is
# trained on through the whole loop, whatever is measured first pays for tracing,
# nothing is warmed up or repeated, and the order never changes.
UPWARDS, DOWNWARDS = "the usual loop", "the usual loop, backwards"


def circulated(
    sizes: Sequence[int],
    fit: Callable[[int], object],
    count: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[tuple[int, float]]:
    """Fit for an epoch of ``count`` examples at each size, one after the other.

    Each size is given with the examples per second that this loop makes of it.
    """
    for size in sizes:
        began = clock()
        fit(size)
        yield size, count / (clock() - began)


def as_circulated(name: str, sizes: Sequence[int]) -> Iterator[Yielded]:
    """Run it with a network from ``MODELS``, and tell what it would have told."""
    model, count = MODELS[name], max(sizes)
    network = model.build()
    network.compile("adam", loss_function())
    examples, labels = model.batch(count)

    def fit(size: int) -> None:
        network.fit(examples, labels, batch_size=size, epochs=1, verbose=0)

    yield READY
    rates = []
    for size, rate in circulated(sizes, fit, count):
        rates.append([size, rate])
        yield Note("told", list(rates))
        yield count


def usual_loop(trials: Iterable[Trial], name: str) -> dict[int, float]:
    """Examples per second by batch size, as the loop in circulation has them."""
    notes = (trial.notes.get("told") for trial in trials if trial.variant == name)
    rates = note_as(list[tuple[int, float]], next(notes, ())) or ()
    return {size: rate for size, rate in rates if size > 0 and rate > 0}


def curves(trials: Iterable[Trial]) -> tuple[Curve, ...]:
    """The trainings that were run to learn, in the order of their batch sizes."""
    trainings = filter(None, map(_curve, trials))
    return tuple(sorted(trainings, key=lambda curve: curve.batch))


def _curve(trial: Trial) -> Curve | None:
    batch = note_as(int, trial.notes.get("batch")) or 0
    losses = note_as(list[float | None], trial.notes.get("losses")) or ()
    worked = [(ended - began, examples) for began, ended, examples in trial.worked]
    seconds = itertools.accumulate((spent for spent, _ in worked), initial=0.0)
    samples = itertools.accumulate((count for _, count in worked), initial=0)
    # A training may be ended between a tick and the look that belongs to it.
    looks = [
        (examples, spent, loss)
        for examples, spent, loss in zip(samples, seconds, losses, strict=False)
        if loss is not None and 0 <= loss < _LARGEST_LOSS
    ]
    if batch < 1 or len(looks) < 2 or looks[1][0] <= 0 or looks[-1][1] <= 0:
        return None
    counts, spent, values = (tuple(column) for column in zip(*looks, strict=True))
    return Curve(batch=batch, samples=counts, seconds=spent, losses=values)


# Beyond this nobody trains.
_SEARCH_MOST = 2**24


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """The largest batch that fits, 0 for none, and the smallest that fails, if any.

    That one ended so (``reason``), by the limit if it ran out of memory. In all so many
    batches were tried (``tries``).
    """

    fits: int
    fails: int | None
    reason: str
    tries: int
    by_limit: bool

    @property
    def closed(self) -> bool:
        """Whether the search came to its end: the two are one step apart."""
        return self.fails is not None and self.fails - self.fits <= step(self.fits)


def step(size: int) -> int:
    """How finely a size is found out: a sixteenth of it, or a little less."""
    return 1 << max(0, size.bit_length() - 5)


def search(first: int, ask: Callable[[int], Try]) -> Tries:
    """Try sizes until the largest that fits is known to a step.

    Args:
        first: The size to begin with; the nearer, the fewer tries.
        ask: Makes the try of a size; one that completes fits, one stopped ends it.
    """
    size, low, high = max(1, first - first % step(first)), 0, _SEARCH_MOST + 1
    while low < size < high:
        trial = yield ask(size)
        if trial.outcome == "stopped":
            return
        low, high = (size, high) if trial.outcome == "completed" else (low, size)
        fine = step(low)
        if high > _SEARCH_MOST:
            size = 2 * low
        elif low == 0:
            size = high // 2
        elif high - low <= fine:
            return
        else:
            size = low + max(fine, (high - low) // 2 // fine * fine)


def tries(name: str, first: int, memory: int | None) -> Tries:
    """Search with a model from ``MODELS``, within ``memory`` bytes if any are given."""

    def ask(size: int) -> Try:
        trained = functools.partial(batches.fitting, name, size)
        return Try(name=f"fits {size:,}?", work=trained, memory=memory)

    return search(first, ask)


def read_search(trials: Iterable[Trial]) -> SearchResult | None:
    """Read what a search has shown; None where there was none."""
    runs = [trial for trial in trials if trial.is_try and trial.outcome != "stopped"]
    by_size = {
        size: trial for trial in runs if (size := size_of(trial.variant, "fits"))
    }
    if not by_size:
        return None
    fits = [size for size, trial in by_size.items() if trial.outcome == "completed"]
    fails = min((size for size in by_size if size not in fits), default=None)
    ended = by_size[fails] if fails else None
    return SearchResult(
        fits=max(fits, default=0),
        fails=fails,
        reason=(ended.message or ended.outcome) if ended else "",
        tries=len(by_size),
        by_limit=ended is not None and ended.outcome == "out-of-memory",
    )
