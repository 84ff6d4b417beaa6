"""How fast the parts of a machine are, over several visits."""

import functools
import itertools
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perfkit.findings.record import Finding
from perfkit.findings.standing import measurement, microbenchmarks
from perfkit.machine.environment import cleaned
from perfkit.measure.measurement import CONTROL, Measurement
from perfkit.measure.monitor import BEST_CORE_SPEED
from perfkit.measure.statistics import student
from perfkit.measure.steady import Steady
from perfkit.measure.trial import Trial
from perfkit.passports.passport import ENDED, BenchmarkRate

Columns = Mapping[str, Sequence[float | None]]
# When a visit began on the passport's clock, and what it found.
Visit = tuple[float, Finding]

# The spread of the other pieces counts like so many more trials; that of a usual
# machine from round to round like so many more rounds.
_BORROWED, _USUAL_ROUNDS = 4.0, 2.0
# Of the spreads of all pieces: pieces that are timed in one trial move as one, and a
# few wild ones must not make all look wild.
_UPPER = 0.75
# Two runs of one machine, minutes apart, differ by more than their trials show: memory
# lies elsewhere, a host has other guests. A standard deviation of the logarithm, as
# `benchmarks/engine.py claims` has shown it in a quiet hour; see docs/trust.md.
BETWEEN_RUNS = 0.012
_NORMAL = 1.96
# Median to standard deviation, and median to standard error of a median.
_FROM_MAD, _OF_A_MEDIAN = 1.4826, 1.2533


@dataclass(frozen=True, kw_only=True)
class Level:
    """A rate, or a ratio of two, with its 95 % interval.

    Attributes:
        middle: Units per second, or how many times as fast.
        low: Lower end; ``high`` is the upper end.
        trials: How many it rests on; of a ratio, how many rounds.
    """

    middle: float
    low: float
    high: float
    trials: int


class Levels:
    """The levels of all that a measurement holds."""

    def __init__(self, measured: Measurement) -> None:
        self._baseline = measured.baseline
        self._rounds = {
            name: {number: part for number, (_, part) in counted.items()}
            for name in {trial.variant for trial in measured.trials}
            if (counted := measured.counted(name))
        }

    def rate(self, variant: str) -> Level | None:
        """How fast a piece of work usually is; None where no trial was completed."""
        found = [_of_blocks(-_costs(one)) for one in self._of(variant).values()]
        if not found:
            return None
        return self._level(found, self._usual, self.drift)

    def ratio(self, fast: str, slow: str) -> Level | None:
        """How many times as fast one is as another; None where no round holds both.

        Both met the same moments of the machine, turn by turn where they took turns.
        """
        one, other = self._of(fast), self._of(slow)
        both = sorted(one.keys() & other.keys())
        found = [_of_blocks(_side_by_side(one[n], other[n])) for n in both]
        # Each of the two has its own share of the spread.
        return self._level(found, 2 * self._usual, 0.0) if found else None

    @functools.cached_property
    def drift(self) -> float:
        """By how much all rates may be off together, because the machine rose or fell.

        Half of the 95 % interval of the logarithm of their mean over the rounds, and
        of what another run would differ by besides.
        """
        known = list(self._rose.values())
        own = max(0, len(known) - 1)
        freedom = own + _USUAL_ROUNDS
        variance = own * _variance(known) + _USUAL_ROUNDS * BETWEEN_RUNS**2
        error = math.sqrt(variance / freedom / max(1, len(known)))
        return math.hypot(student(freedom) * error, _NORMAL * BETWEEN_RUNS)

    @property
    def noise_floor(self) -> float | None:
        """The ratio, 1 or more, of the baseline and its control; None if unknown."""
        found = self.ratio(CONTROL, self._baseline)
        return math.exp(abs(math.log(found.middle))) if found else None

    def _of(self, variant: str) -> dict[int, Steady]:
        return self._rounds.get(variant, {})

    @functools.cached_property
    def _logs(self) -> dict[str, dict[int, float]]:
        """Each trial's level against the mean of its piece of work, by round."""
        found = dict[str, dict[int, float]]()
        for name, trials in self._rounds.items():
            logs = {n: _of_blocks(-_costs(one))[0] for n, one in trials.items()}
            mean = statistics.fmean(logs.values())
            if len(logs) > 1:
                found[name] = {n: log - mean for n, log in logs.items()}
        return found

    @functools.cached_property
    def _rose(self) -> dict[int, float]:
        """By how much all levels lay higher in each round."""
        rounds = sorted({n for logs in self._logs.values() for n in logs})
        return {
            n: statistics.median(logs[n] for logs in self._logs.values() if n in logs)
            for n in rounds
        }

    @functools.cached_property
    def _usual(self) -> float:
        """The usual variance of a trial's level, over all pieces of work."""
        known = [
            _spread([log - self._rose[n] for n, log in logs.items()])
            for logs in self._logs.values()
        ]
        return float(np.quantile(known, _UPPER)) if known else 0.0

    def _level(
        self, found: Sequence[tuple[float, float]], usual: float, shared: float
    ) -> Level:
        """Put levels of trials together.

        Args:
            found: Logarithm and its variance, of each trial.
            usual: The variance from trial to trial that is usual.
            shared: Half of the interval of what all levels have in common.
        """
        logs, count = [log for log, _ in found], len(found)
        own = count - 1
        freedom = own + (_BORROWED if usual else 0.0)
        variance = own * _variance(logs) + (freedom - own) * usual
        variance = variance / freedom if freedom else 0.0
        variance = max(variance, float(np.mean([within for _, within in found])))
        error = math.sqrt(variance / count)
        half = math.hypot(student(max(1.0, freedom)) * error, shared)
        middle = _middle(logs)
        return Level(
            middle=math.exp(middle),
            low=math.exp(middle - half),
            high=math.exp(middle + half),
            trials=count,
        )


def _costs(of: Steady) -> NDArray[np.float64]:
    """Logarithm of the seconds of an example, block by block."""
    return np.asarray(np.log(of.seconds / of.examples + of.pauses_s))


def _side_by_side(fast: Steady, slow: Steady) -> NDArray[np.float64]:
    """Logarithms of how much longer the slow one took, turn by turn if they took any.

    Else the middle of one is held against every block of the other.
    """
    _, mine, theirs = np.intersect1d(fast.keys, slow.keys, return_indices=True)
    one, other = _costs(fast), _costs(slow)
    if len(mine) > 1:
        return np.asarray(other[theirs] - one[mine])
    return np.asarray(np.median(other) - one)


def _of_blocks(logs: NDArray[np.float64]) -> tuple[float, float]:
    """Median of the blocks of a trial, and the variance of that median."""
    middle = float(np.median(logs))
    spread = _FROM_MAD * float(np.median(np.abs(logs - middle)))
    return middle, (_OF_A_MEDIAN * spread) ** 2 / len(logs)


def _middle(logs: Sequence[float]) -> float:
    """The median of the means of all pairs: one trial out of four cannot move it far.

    It was found by Hodges and Lehmann, and is hardly less sharp than the mean.
    """
    pairs = itertools.combinations_with_replacement(logs, 2)
    return statistics.median((one + other) / 2 for one, other in pairs)


def _variance(logs: Sequence[float]) -> float:
    return float(np.var(logs, ddof=1)) if len(logs) > 1 else 0.0


def _spread(logs: Sequence[float]) -> float:
    """Variance of a few logarithms, of which the upper quartile is to be right."""
    # Not with the module, which every trial imports: it takes most of a second.
    from scipy import stats

    own = len(logs) - 1
    # Most variances of so few lie far below the true one, some far above it.
    return _variance(logs) / (float(stats.chi2.ppf(_UPPER, own)) / own)


# Enough for a chart as wide as a page; half of what a file may hold.
SAMPLES = 150
# Bits and states have no mean, and the machine's record tells what was seen of them.
_NO_MEAN = ("throttle", "link_generation", "link_width")
_LONGEST = 300


def benchmark_rates(
    finding: Finding, names: Iterable[str]
) -> tuple[BenchmarkRate, ...]:
    """The microbenchmarks of a finding, measured or not, without these names."""
    levels, hidden = Levels(measurement(finding)), tuple(names)
    every = {
        name: (one, levels.rate(name))
        for name, one in microbenchmarks(finding.notes).items()
    }
    return tuple(
        BenchmarkRate(
            name=name,
            rate=level.middle if level else None,
            low=level.low if level else None,
            high=level.high if level else None,
            trials=level.trials if level else 0,
            missing="" if level else cleaned(_why(finding, name), hidden, _LONGEST),
            **vars(one),
        )
        for name, (one, level) in every.items()
    )


def thinned(
    columns: Columns, most: int = SAMPLES
) -> dict[str, tuple[float | None, ...]]:
    """So many samples at most, each the mean of those that it stands for.

    Args:
        columns: ``"t"`` in seconds, and readings of the same length.
        most: Samples to keep; a mean's time is that of the last of its samples.
    """
    count = len(columns.get("t", ()))
    each = -(-count // most) if count else 1
    starts = range(0, count, each)
    return {
        name: tuple(_one(name, values[start : start + each]) for start in starts)
        for name, values in columns.items()
        if not name.endswith(_NO_MEAN)
    }


def on_one_scale(visits: Sequence[Visit]) -> Iterator[tuple[float, Columns]]:
    """When each visit began, and its samples: a core's speed as a share of one best.

    Each run tells it as a share of the best that it saw itself: a machine that is slow
    from the second visit on would look as fast as in the first.
    """
    told = [found.notes.get(BEST_CORE_SPEED) for _, found in visits]
    known = [best for best in told if isinstance(best, int | float) and best > 0]
    for (began, found), best in zip(visits, told, strict=True):
        columns = dict(found.samples)
        if best in known and "core_speed" in columns:
            share = best / max(known)
            columns["core_speed"] = tuple(
                speed if speed is None else speed * share
                for speed in columns["core_speed"]
            )
        yield began, columns


def joined(parts: Iterable[tuple[float, Columns]]) -> dict[str, list[float | None]]:
    """Samples of several runs on one clock, from when each began on it, and its own."""
    known = [(began, columns) for began, columns in parts if columns.get("t")]
    names = dict.fromkeys(name for _, columns in known for name in columns)
    whole: dict[str, list[float | None]] = {name: [] for name in names}
    for began, columns in known:
        length = len(columns["t"])
        # The clocks are read a moment apart, and runs come one after another.
        began = max(began, *(t for t in whole["t"][-1:] if t is not None), 0.0)
        for name in names:
            values = columns.get(name, [None] * length)
            shifted = [v if v is None or name != "t" else v + began for v in values]
            whole[name] += shifted
    return whole


def _one(name: str, values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return (
        round(known[-1], 2) if name == "t" else float(f"{statistics.fmean(known):.3g}")
    )


def _why(finding: Finding, name: str) -> str:
    if name in finding.unavailable:
        return f"{finding.unavailable[name].rstrip('.')}."
    return how_it_failed(t for t in finding.trials if t.variant == name)


def how_it_failed(trials: Iterable[Trial]) -> str:
    """Why trials that gave no rate gave none, in a sentence."""
    ended = ("completed", "stopped")
    failed = [t.message for t in trials if t.message and t.outcome not in ended]
    return f"It {failed[-1].rstrip('.')}." if failed else ENDED


def together(visits: Sequence[Visit]) -> Finding:
    """Make one finding of the visits of an experiment: its rounds are all of theirs.

    Args:
        visits: In order; at least one.

    Returns:
        The last one with the trials and samples of all, on the passport's clock, and
        what was worked out of them worked out anew.
    """
    found = [finding for _, finding in visits]
    columns = joined(on_one_scale(visits))
    measured = replace(
        measurement(found[-1]),
        variants=tuple(
            {a.name: a for one in found for a in measurement(one).variants}.values()
        ),
        trials=tuple(_trials(visits)),
        samples={name: tuple(values) for name, values in columns.items()},
    )
    return replace(
        found[-1],
        trials=measured.trials,
        samples=measured.samples,
        timings=measured.timings,
        comparisons=measured.comparisons,
        noise_floor=measured.noise_floor,
        budget_s=sum(one.budget_s for one in found),
    )


def _trials(visits: Sequence[Visit]) -> Iterator[Trial]:
    """All trials; no round of one visit bears the number of another's."""
    before = 0
    for began, found in visits:
        for trial in found.trials:
            number = 0 if trial.is_try else trial.round + before
            yield replace(trial, round=number, started_s=trial.started_s + began)
        before += max((trial.round for trial in found.trials), default=0)
