"""What a run over batch sizes shows in numbers, and what its trials told."""

from __future__ import annotations

import functools
import itertools
import math
import re
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.experiments.shared import batches
from perfkit.experiments.shared.batches import Forecast
from perfkit.measure.plan import Try
from perfkit.measure.statistics import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from perfkit.measure.measurement import Measurement
    from perfkit.measure.plan import Tries
    from perfkit.measure.statistics import Comparison, Timing
    from perfkit.measure.trial import Trial


_NAME = re.compile(r"batch ([\d,]{1,12})")
# Two sizes always lie on a line.
_FEWEST = 3
# No step time is known better than this share of it.
_BEST_KNOWN = 1e-3
_BENDS = 0.10
_LEVEL = 0.975


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """The seconds of one step at a batch size, with their 95 % interval."""

    size: int
    seconds: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Line:
    """A step's seconds as ``overhead + size * cost``.

    Attributes:
        overhead: Seconds of a step before its first example.
        cost: Seconds of each example.
        bends: The sizes whose step is not on the line, with how many times the line's
            seconds it takes.
    """

    overhead: Estimate
    cost: Estimate
    bends: tuple[tuple[int, float], ...]

    def at(self, size: float) -> float:
        """Seconds of a step by the line."""
        return self.overhead.value + size * self.cost.value

    @property
    def shows_overhead(self) -> bool:
        """Whether there is any for sure."""
        return self.overhead.low > 0


@dataclass(frozen=True, kw_only=True)
class Knee:
    """The smallest size that is not shown to be slower than the best.

    Attributes:
        size: That size.
        best: The size with the highest rate.
        against_best: How the best compares with it; None where it is the best.
        alone: Whether the best is shown to beat all others.
        sizes: All that were timed, in order.
    """

    size: int
    best: int
    against_best: Comparison | None
    alone: bool
    sizes: tuple[int, ...]

    @property
    def firm(self) -> bool:
        """Whether it is known well enough: a larger difference is ruled out."""
        compared = self.against_best
        return compared is None or compared.verdict == "no difference shown"


def name_of(size: int) -> str:
    """What the arm of a batch size is called."""
    return f"batch {size:,}"


def size_of(name: str) -> int:
    """The batch size of an arm; 0 where the name is none of theirs."""
    said = _NAME.fullmatch(name)
    return int(said[1].replace(",", "") or 0) if said else 0


def sized(timings: Sequence[Timing]) -> dict[int, Timing]:
    """The timings of batch sizes, by size and in its order."""
    known = {size_of(timing.variant): timing for timing in timings}
    return {size: known[size] for size in sorted(known) if size}


def step_times(timings: Sequence[Timing]) -> tuple[StepTime, ...]:
    """Seconds of a step at each size, in the order of sizes."""
    return tuple(
        StepTime(size=size, seconds=size / t.rate, low=size / t.high, high=size / t.low)
        for size, t in sized(timings).items()
        if min(t.rate, t.low) > 0
    )


def line(steps: Sequence[StepTime], floor: float | None = None) -> Line | None:
    """Fit the line by weighted least squares; None with fewer than three sizes.

    The weights come from each size's own interval. Where the line misses by more than
    those allow, its own intervals get wider by as much.

    Args:
        steps: What is known of each size.
        floor: The noise floor, a ratio; a size that is off the line by less is not
            said to be off it.
    """
    if len(steps) < _FEWEST:
        return None
    sizes = np.array([s.size for s in steps], np.float64)
    seconds = np.array([s.seconds for s in steps])
    half = np.array([(s.high / s.low) ** 0.5 - 1 for s in steps])
    spread = seconds * np.maximum(half / 2, _BEST_KNOWN)
    design = np.stack([np.ones_like(sizes), sizes], axis=1) / spread[:, None]
    found, *_ = np.linalg.lstsq(design, seconds / spread, rcond=None)
    misses = seconds / spread - design @ found
    freedom = len(steps) - 2
    scale = max(1.0, float(misses @ misses) / freedom)
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * scale)
    reach = _student(freedom) * errors
    overhead, cost = (
        Estimate(value=float(v), low=float(v - r), high=float(v + r))
        for v, r in zip(found, reach, strict=True)
    )
    straight = Line(overhead=overhead, cost=cost, bends=())
    bends = tuple((s.size, s.seconds / straight.at(s.size)) for s in steps)
    least = max(_BENDS, (floor or 1.0) - 1)
    off = tuple(
        bend
        for step, bend in zip(steps, bends, strict=True)
        if _misses(straight, step, least)
    )
    return Line(overhead=overhead, cost=cost, bends=off)


def _misses(straight: Line, step: StepTime, least: float) -> bool:
    """Whether a step is off the line by more than its interval and than ``least``."""
    expected = straight.at(step.size)
    if expected <= 0:
        return True
    within = step.low <= expected <= step.high
    return not within and abs(step.seconds / expected - 1) > least


def knee(measured: Measurement) -> Knee | None:
    """Find it; None while no size has a rate."""
    known = sized(measured.timings)
    if not known:
        return None
    ranked = measured.fastest(tuple(timing.variant for timing in known.values()))
    best = size_of(ranked[0].variant)
    size = min(size_of(timing.variant) for timing in ranked)
    compared = None if size == best else measured.compare(name_of(best), name_of(size))
    return Knee(
        size=size,
        best=best,
        against_best=compared,
        alone=len(ranked) == 1,
        sizes=tuple(known),
    )


def _student(freedom: int) -> float:
    """How many standard errors an interval reaches."""
    # Not with the module, which listing experiments would load.
    from scipy import stats

    return float(stats.t.ppf(_LEVEL, freedom))


_PARTS = ("weights", "gradients", "slots", "activations")
_NUMBERS_MOST = 1000


@dataclass(frozen=True, kw_only=True)
class Curve:
    """How the loss of held-out examples fell in one training.

    Attributes:
        batch: Its batch size.
        samples: Examples learnt from at each look, the first being 0.
        seconds: Seconds of training by then.
        losses: What was seen.
    """

    batch: int
    samples: tuple[int, ...]
    seconds: tuple[float, ...]
    losses: tuple[float, ...]

    def after_samples(self, count: float) -> float | None:
        """The loss once so many examples were learnt from; None if none was by then."""
        return _at(self.samples, self.losses, count)

    def after_seconds(self, seconds: float) -> float | None:
        """The loss once so many seconds had passed; None if no step was done yet."""
        return _at(self.seconds, self.losses, seconds)


def forecast(notes: Mapping[str, Any]) -> Forecast | None:
    """What was forecast from shapes."""
    note = notes.get("forecast")
    if not isinstance(note, dict):
        return None
    parts = {name: _count(note.get(name)) for name in _PARTS}
    if any(part is None for part in parts.values()):
        return None
    return Forecast(**{name: part or 0 for name, part in parts.items()})


def memory(trials: Iterable[Trial], what: str = "resident") -> dict[int, float]:
    """Bytes above the start at each batch size, the median over its trials."""
    told = dict[int, list[int]]()
    for trial in trials:
        note, size = trial.notes.get("memory"), size_of(trial.variant)
        value = _count(note.get(what)) if isinstance(note, dict) else None
        if size and value is not None:
            told.setdefault(size, []).append(value)
    return {size: statistics.median(told[size]) for size in sorted(told)}


def asked_for(trials: Iterable[Trial], size: int) -> int | None:
    """Bytes that a try with a batch of ``size`` had asked for; None if none told."""
    for trial in trials:
        note = trial.notes.get("memory")
        if trial.is_try and trial.notes.get("batch") == size and isinstance(note, dict):
            held = _count(note.get("gpu_peak", note.get("data")))
            if held is not None:
                return held
    return None


def usual_loop(trials: Iterable[Trial], name: str) -> dict[int, float]:
    """Examples per second by batch size, as the loop in circulation has them."""
    notes = [t.notes.get("told") for t in trials if t.variant == name]
    listed = next((note for note in notes if isinstance(note, list | tuple)), ())
    return dict(itertools.islice(_pairs(listed), _NUMBERS_MOST))


def _pairs(listed: Iterable[Any]) -> Iterator[tuple[int, float]]:
    for pair in listed:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            continue
        size, rate = _count(pair[0]), pair[1]
        if size and isinstance(rate, int | float) and rate > 0:
            yield size, float(rate)


def curves(trials: Iterable[Trial]) -> tuple[Curve, ...]:
    """The trainings that were run to learn, in the order of their batch sizes."""
    found = [curve for trial in trials if (curve := _curve(trial)) is not None]
    return tuple(sorted(found, key=lambda curve: curve.batch))


def _curve(trial: Trial) -> Curve | None:
    losses, batch = trial.notes.get("losses"), _count(trial.notes.get("batch"))
    if not batch or not isinstance(losses, list | tuple):
        return None
    worked = [
        (now - before, examples)
        for (before, _), (now, examples) in itertools.pairwise(trial.ticks)
        if examples
    ]
    seconds = itertools.accumulate((spent for spent, _ in worked), initial=0.0)
    samples = itertools.accumulate((count for _, count in worked), initial=0)
    # A training may be ended between a tick and the look that belongs to it.
    looks = [
        look
        for look in zip(samples, seconds, losses, strict=False)
        if isinstance(look[2], int | float) and math.isfinite(look[2])
    ][:_NUMBERS_MOST]
    if len(looks) < 2:
        return None
    told = zip(*looks, strict=True)
    samples_, seconds_, losses_ = (tuple(column) for column in told)
    return Curve(batch=batch, samples=samples_, seconds=seconds_, losses=losses_)


def _at(places: Sequence[float], losses: Sequence[float], end: float) -> float | None:
    """The last loss up to there; the first look came before any step."""
    looks = list(zip(places, losses, strict=True))[1:]
    known = [loss for place, loss in looks if place <= end]
    return known[-1] if known else None


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and value >= 0 else None


Span = tuple[float, float]

# A sample counts where turns fill so much of its time.
_FILLED = 0.9
# Less of a variant than this shows nothing of it.
_LEAST_S = 1.0


def load(
    trials: Sequence[Trial],
    samples: Mapping[str, Sequence[float | None]],
    reading: str,
) -> dict[str, float]:
    """The mean of a reading during the turns of each variant, where it is known.

    Args:
        trials: All that ran.
        samples: As ``Finding.samples`` holds them.
        reading: One of their names, such as ``"cpu_trial"`` in cores.
    """
    worked = _worked(trials)
    rows, values = _mixtures(worked, samples, reading)
    if len(rows) < 2 * len(worked) or not worked:
        return {}
    from scipy.optimize import nnls

    found, _ = nnls(rows, values)
    lasted = {name: sum(e - s for s, e in spans) for name, spans in worked.items()}
    known = zip(worked, found, strict=True)
    return {name: float(v) for name, v in known if lasted[name] >= _LEAST_S}


def _worked(trials: Sequence[Trial]) -> dict[str, list[Span]]:
    """When each variant was at work, on the run's clock."""
    spans = dict[str, list[Span]]()
    for trial in trials:
        if not trial.is_try and trial.outcome == "completed":
            spans.setdefault(trial.variant, []).extend(_turns(trial))
    return {name: found for name, found in spans.items() if found}


def _turns(trial: Trial) -> Iterator[Span]:
    times = np.array([at for at, _ in trial.ticks])
    begins = trial.turns or (times[:1].tolist())
    for start, after in itertools.pairwise([*begins, np.inf]):
        inside = times[(times > start) & (times < after)]
        if len(inside):
            yield trial.started_s + start, trial.started_s + float(inside[-1])


def _mixtures(
    worked: Mapping[str, list[Span]],
    samples: Mapping[str, Sequence[float | None]],
    reading: str,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each sample that turns fill: the share of each variant, and the reading."""
    rows, values = [], list[float]()
    read = zip(samples.get("t", ()), samples.get(reading, ()), strict=False)
    for (begin, _), (end, value) in itertools.pairwise(read):
        if begin is None or end is None or value is None or end <= begin:
            continue
        shares = np.array([_overlap(s, begin, end) for s in worked.values()])
        if shares.sum() / (end - begin) >= _FILLED:
            rows.append(shares / shares.sum())
            values.append(value)
    return np.array(rows).reshape(len(rows), len(worked)), np.array(values)


def _overlap(spans: Sequence[Span], begin: float, end: float) -> float:
    return sum(max(0.0, min(end, e) - max(begin, s)) for s, e in spans)


# Beyond this nobody trains.
_SEARCH_MOST = 2**24
_ASKED = re.compile(r"fits ([\d,]{1,12})\?")
_WITHOUT_LIMIT = "{:,} without the limit"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search has shown so far.

    Attributes:
        fits: The largest batch that was trained on; 0 where none was.
        fails: The smallest that was not; None where all were.
        how: How the trial of that one ended, in words.
        asked: How many batches were tried.
        by_limit: Whether it is the limit that ended it: it ran out of memory, or it
            crashed with the limit and trained without.
    """

    fits: int
    fails: int | None
    how: str
    asked: int
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
        ask: Makes the try of a size; one that completes fits.
    """
    size, low, high = max(1, first - first % step(first)), 0, _SEARCH_MOST + 1
    while low < size < high:
        trial = yield ask(size)
        if trial.outcome == "stopped":
            return
        if trial.outcome == "completed":
            low = size
        else:
            high = size
        size = _next(low, high)


def _next(low: int, high: int) -> int:
    """The size to try now; ``low`` where nothing is left to find out."""
    if high > _SEARCH_MOST:
        return 2 * low
    if low == 0:
        return high // 2
    fine = step(low)
    if high - low <= fine:
        return low
    return low + max(fine, (high - low) // 2 // fine * fine)


def tries(name: str, first: int, memory: int | None) -> Tries:
    """Search with a model from ``MODELS``.

    Args:
        name: Of the model.
        first: The size to begin with.
        memory: Bytes that a trial may allocate; None leaves it to the device.
    """

    def ask(size: int) -> Try:
        trained = functools.partial(batches.fitting, name, size)
        return Try(name=f"fits {size:,}?", work=trained, memory=memory)

    ended: list[Trial] = []
    asking = search(first, ask)
    wanted = next(asking)
    while True:
        trial = yield wanted
        ended.append(trial)
        try:
            wanted = asking.send(trial)
        except StopIteration:
            break
    failed = found(ended)
    if failed and failed.fails and not failed.by_limit and memory is not None:
        # Some libraries crash where they are given no memory: swap the limit alone.
        again = functools.partial(batches.fitting, name, failed.fails)
        yield Try(name=_WITHOUT_LIMIT.format(failed.fails), work=again)


def found(trials: Iterable[Trial]) -> Found | None:
    """Read what a search has shown; None where there was none."""
    kept = [trial for trial in trials if trial.is_try and trial.outcome != "stopped"]
    asked = {size: trial for trial in kept if (size := _size(trial.variant))}
    if not asked:
        return None
    fits = [size for size, trial in asked.items() if trial.outcome == "completed"]
    fails = min((size for size in asked if size not in fits), default=None)
    ended = asked[fails] if fails else None
    return Found(
        fits=max(fits, default=0),
        fails=fails,
        how=(ended.message or ended.outcome) if ended else "",
        asked=len(asked),
        by_limit=ended is not None and _by_limit(ended, fails or 0, kept),
    )


def _size(name: str) -> int:
    said = _ASKED.fullmatch(name)
    return int(said[1].replace(",", "") or 0) if said else 0


def _by_limit(ended: Trial, size: int, trials: Iterable[Trial]) -> bool:
    if ended.outcome == "out-of-memory":
        return True
    free = _WITHOUT_LIMIT.format(size)
    return any(t.variant == free and t.outcome == "completed" for t in trials)
