"""Which ticks of a trial show its steady rate, found from the ticks themselves.

The first call (trace, compile, autotune) is one tick. After it a trial may still be
warming up; where it stops is found by the marginal standard error rule (MSER), which
drops the beginning whose removal leaves the mean of the rest best known.
"""

import math
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perfkit.engine.trial import RUN, Trial

# The first of a turn this many times as slow as usual had to wait.
_AWAKENING = 2.5


def awakening(first: NDArray[np.bool_], cost: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which ones are the first of a turn, and far slower than those that are not.

    None of them where all are the first of their turns; ``cost`` is seconds of each.
    """
    later = cost[~first]
    if not len(later):
        return np.zeros(len(cost), dtype=bool)
    slow: NDArray[np.bool_] = cost > _AWAKENING * np.median(later)
    return first & slow


# Standard deviations of the rank sum from which on pauses are shown to differ.
_APART = 2.8
# The shortest of fewer is no measure for what the others take beyond it.
_FEW = 4
# Standard errors up to which the mean of some pauses is taken for that of the others.
_AGREE = 2.5
# Pauses: the seconds of each, and of what comes between two of them.
_Pauses = Sequence[tuple[float, float]]


def seen_s(trial: Trial, example_s: float) -> float:
    """Seconds that a trial's own pauses, each seen, add to each of its examples.

    Without pauses an example takes ``example_s``.
    """
    means_s = {}
    for label, (period, _) in trial.recurring.items():
        pauses = trial.pauses[label]
        longest = min(pauses) + period * example_s
        means_s[label] = statistics.fmean(min(pause, longest) for pause in pauses)
    return _shared_out(trial, means_s, example_s)


@dataclass(frozen=True)
class _Beyond:
    """What pauses take beyond the shortest.

    Those of several variants that are alike are one and the same object.

    Attributes:
        each_s: Of each pause, made longer by what the shortest of few hides.
        error_s: The standard error of their mean.
    """

    each_s: tuple[float, ...] = (0.0,)
    error_s: float = 0.0

    @classmethod
    def from_groups(cls, groups: Sequence[Sequence[float]]) -> "_Beyond":
        """Take it from seconds beyond the shortest of each group."""
        # A pause that is alone is the shortest, and tells nothing of the others.
        several = [group for group in groups if len(group) > 1]
        pauses = [pause for group in several for pause in group]
        if not pauses:
            return cls()
        # The shortest of few is no floor: so it is where tails fall off exponentially.
        longer = len(pauses) / (len(pauses) - len(several))
        error = longer * statistics.stdev(pauses) / len(pauses) ** 0.5
        return cls(tuple(pause * longer for pause in pauses), error)

    @property
    def deviation_s(self) -> float:
        """The standard deviation of one pause."""
        return statistics.pstdev(self.each_s)

    def shortest_of(self, count: int, longest: float) -> tuple[float, float]:
        """Mean and standard deviation of what the shortest of so many takes.

        No pause counts for more than ``longest`` seconds.
        """
        capped = np.minimum(np.sort(self.each_s), longest)
        all_longer = np.linspace(1.0, 0.0, len(capped) + 1) ** count
        shares = all_longer[:-1] - all_longer[1:]
        mean = float(shares @ capped)
        return mean, math.sqrt(float(shares @ (capped - mean) ** 2))


@dataclass(frozen=True)
class _Pause:
    """What a pause of one variant takes: its shortest one and what lies beyond.

    Where those of the others tell that better than its own, it goes by theirs: with the
    few that it has, its shortest may be a long one.

    Attributes:
        shortest_s: Its shortest one.
        own_s: What each of its own takes beyond that.
        beyond: What is usual beyond the shortest; None where its own mean counts.
        error_s: The standard error of that mean, or else of how long its shortest is.
    """

    shortest_s: float
    own_s: tuple[float, ...]
    beyond: _Beyond | None
    error_s: float

    @classmethod
    def from_pauses(cls, pauses: _Pauses, beyond: _Beyond) -> "_Pause":
        """Take it from those that were seen, and from what is usual."""
        excess_s = tuple(_beyond_shortest(pauses))
        shortest = min(seconds for seconds, _ in pauses)
        _, error = beyond.shortest_of(len(excess_s), math.inf)
        error_of_mean = beyond.deviation_s / len(excess_s) ** 0.5
        if error_of_mean < error:
            return cls(shortest, excess_s, None, error_of_mean)
        return cls(shortest, excess_s, beyond, error)

    def seconds(self, longest: float) -> float:
        """How long it usually is, of which no more than so much is beyond."""
        if self.beyond is None:
            return self.shortest_s + statistics.fmean(self.own_s)
        hidden, _ = self.beyond.shortest_of(len(self.own_s), longest)
        beyond_s = min(statistics.fmean(self.beyond.each_s), longest)
        return self.shortest_s + beyond_s - hidden


class Usual:
    """The usual pauses of the variants of a run, from their completed trials.

    Those of the variants ``apart`` are known to be others than the rest's.
    """

    def __init__(
        self, trials: Mapping[str, Sequence[Trial]], apart: Collection[str] = ()
    ) -> None:
        by_label: dict[str, dict[str, _Pauses]] = {}
        for variant, mine in trials.items():
            for label, pauses in _by_label(mine).items():
                by_label.setdefault(label, {})[variant] = pauses
        self._beyond: dict[tuple[str, str], _Beyond] = {}
        self._pauses: dict[tuple[str, str], _Pause] = {}
        for label, by_variant in by_label.items():
            for variant, beyond, pause in _usual(by_variant, apart):
                self._beyond[variant, label] = beyond
                self._pauses[variant, label] = pause

    def usual_s(self, variant: str, trial: Trial, example_s: float) -> float:
        """Seconds that usual pauses add to each example of one of its trials."""
        means_s = {
            label: self._pauses[variant, label].seconds(period * example_s)
            for label, (period, _) in trial.recurring.items()
        }
        return _shared_out(trial, means_s, example_s)

    def errors_s(self, variant: str, trial: Trial) -> dict[str, float]:
        """Standard errors of what usual pauses add to each example, by their source.

        An error that two variants share is in both alike: it has the same key.
        """
        errors: dict[str, float] = {}
        for label, (period, _) in trial.recurring.items():
            pause = self._pauses[variant, label]
            errors[str(id(pause))] = pause.error_s / period
            beyond = pause.beyond
            longest = period * _example_s(trial)
            if beyond and statistics.fmean(beyond.each_s) <= longest:
                shared = str(id(beyond))
                errors[shared] = errors.get(shared, 0.0) + beyond.error_s / period
        return errors

    def by_chance_s(
        self, variant: str, trial: Trial, trials: Sequence[Trial], examples: float
    ) -> float:
        """Standard error of what pauses that count one by one add to each example.

        They vary as those of ``trial``, one of ``variant``. Where ``trials`` tell of
        none, their ``examples`` say how many there were.
        """
        variance = 0.0
        for label, (period, _) in trial.recurring.items():
            beyond = self._beyond.get((variant, label), _Beyond())
            count = sum(len(t.pauses.get(label, ())) for t in trials)
            often = count or max(1.0, examples / period)
            variance += (beyond.deviation_s / period) ** 2 / often
        return math.sqrt(variance)


def _usual(
    pauses: Mapping[str, _Pauses], apart: Collection[str]
) -> Iterator[tuple[str, _Beyond, _Pause]]:
    """What is usual for each variant: of all together, or its own where it differs."""
    beyond = {variant: _beyond_shortest(mine) for variant, mine in pauses.items()}
    joint = pauses.keys() - set(apart)
    alike = {
        variant
        for variant in joint
        if not _is_apart(beyond[variant], [beyond[o] for o in joint if o != variant])
    }
    usual = _Beyond.from_groups([beyond[variant] for variant in sorted(alike)])
    agrees = {o: _agrees(pauses[o], [pauses[p] for p in alike - {o}]) for o in alike}
    agreeing = {o for o in alike if agrees[o] is not False and True in agrees.values()}
    # One object: what is not known of it is then the same for all of them.
    together = [pause for variant in sorted(agreeing) for pause in pauses[variant]]
    pause = _Pause.from_pauses(together, usual) if agreeing else None
    for variant, mine in pauses.items():
        of_its = usual if variant in alike else _Beyond.from_groups([beyond[variant]])
        its_pause = pause if variant in agreeing else None
        yield variant, of_its, its_pause or _Pause.from_pauses(mine, of_its)


def _beyond_shortest(pauses: _Pauses) -> list[float]:
    shortest = min(seconds for seconds, _ in pauses)
    return [min(seconds - shortest, longest) for seconds, longest in pauses]


def _agrees(mine: _Pauses, groups: Iterable[_Pauses]) -> bool | None:
    """Whether pauses are on average as long as those of others; None of few others."""
    own_s = [seconds for seconds, _ in mine]
    others_s = [seconds for pauses in groups for seconds, _ in pauses]
    if len(others_s) < _FEW:
        return None
    error = statistics.stdev(others_s) * math.sqrt(1 / len(own_s) + 1 / len(others_s))
    return abs(statistics.fmean(own_s) - statistics.fmean(others_s)) <= _AGREE * error


def _is_apart(pauses: Sequence[float], groups: Iterable[Sequence[float]]) -> bool:
    """Whether most of one lie on the same side of most of the others (a rank sum)."""
    pooled = [pause for group in groups if len(group) >= _FEW for pause in group]
    above = sum((a > b) - (a < b) for a in pauses for b in pooled) / 2
    n, m = len(pauses), len(pooled)
    return abs(above) > _APART * math.sqrt(n * m * (n + m + 1) / 12)


def _by_label(trials: Iterable[Trial]) -> dict[str, list[tuple[float, float]]]:
    """Seconds of each pause, and what comes between two of them takes."""
    by_label: dict[str, list[tuple[float, float]]] = {}
    for trial in trials:
        for label, (period, _) in trial.recurring.items():
            pauses, between = trial.pauses.get(label, ()), period * _example_s(trial)
            by_label.setdefault(label, []).extend((pause, between) for pause in pauses)
    return {label: pauses for label, pauses in by_label.items() if pauses}


def _example_s(trial: Trial) -> float:
    """Seconds of an example of a trial, about."""
    costs = [(end - begin) / examples for begin, end, examples in trial.worked]
    return statistics.median(costs) if costs else 0.0


def _shared_out(trial: Trial, means_s: Mapping[str, float], example_s: float) -> float:
    added = sum(
        (means_s[label] - within * example_s) / period
        for label, (period, within) in trial.recurring.items()
    )
    return max(0.0, added)


# A beginning counts as warm-up only when its rate differs from the rest by this much,
# and by so many standard errors.
_WARM_UP_DIFFERS = 0.10
_WARM_UP_T = 4.0
# The standard deviation of what is normal, over its median absolute deviation.
_NORMAL_MAD = 1.482602218505602
# Fewer ticks than this do not show what is steady.
_STEADY_TICKS = 8
# Under which a trial keeps what was found of it; no file is given names like this.
_FOUND = "_steady"
# Ticks of a trial in one go are gathered into so many blocks for resampling.
_BLOCKS = 12


@dataclass(frozen=True, eq=False)
class Steady:
    """The steady part of one trial, in blocks.

    Attributes:
        keys: Which turn each block is; equal keys of one round ran side by side. Empty
            where the trial ran in one go.
        examples: Done in each block.
        seconds: Worked in each block.
        first_call_s: Seconds of the first tick.
        pauses_s: Seconds that the trial's own recurring pauses add to each example;
            ``seconds`` leaves them out.
        turns: How many turns it is from; 0 where the trial ran in one go.
        waited: Whether the first of a turn had to wait, so that none of them counts.
        rested: The same without the first of each turn; None where nothing is left.
    """

    keys: tuple[int, ...]
    examples: NDArray[np.float64]
    seconds: NDArray[np.float64]
    first_call_s: float
    pauses_s: float = 0.0
    turns: int = 0
    waited: bool = False
    rested: "Steady | None" = None

    @property
    def example_s(self) -> float:
        """Seconds of an example, as ``seconds`` has them."""
        return float(self.seconds.sum() / self.examples.sum())

    def with_pauses(self, pauses_s: float) -> "Steady":
        """The same with pauses of so many seconds an example shared out over it."""
        return replace(self, seconds=self.seconds + pauses_s * self.examples)

    @property
    def rate(self) -> float:
        """Examples per second."""
        return float(self.examples.sum() / self.seconds.sum())


def steady(trial: Trial) -> Steady | None:
    """Find the steady part of a trial; None where it is too short to have one."""
    fields = vars(trial)
    # With the trial it goes: a kernel that stays open for days forgets its runs.
    if _FOUND not in fields:
        fields[_FOUND] = _steady(trial)
    part: Steady | None = fields[_FOUND]
    return part


def _steady(trial: Trial) -> Steady | None:
    times = np.array([t for t, _ in trial.ticks], dtype=np.float64)
    counts = np.array([n for _, n in trial.ticks], dtype=np.float64)
    worked = counts[1:] > 0
    ends, examples = times[1:][worked], counts[1:][worked]
    spent = np.diff(times)[worked]
    if RUN in trial.notes and len(spent) == 1 and spent[0] > 0:
        # Nothing in it is left out, and it shows nothing of how it varies.
        return Steady((), examples, spent, first_call_s=0.0)
    # One tick is the first call; a rate needs at least two more.
    if len(spent) < 3 or not np.all(spent > 0):
        return None
    # Each pause that belongs to the rate has come at least once.
    if not all(trial.pauses.get(label) for label in trial.recurring):
        return None
    first_call, ends, spent, examples = spent[0], ends[1:], spent[1:], examples[1:]
    cost = spent / examples
    turn = np.searchsorted(np.array(trial.turns), ends, side="left")

    def cut(keep: NDArray[np.bool_]) -> Steady:
        keys, blocks = np.unique(turn[keep], return_inverse=True)
        turns = len(keys) if keys.any() else 0
        if turns < 2:
            # One turn shows nothing of how turns differ; its ticks show something.
            keys = np.array([], dtype=int)
            blocks = np.arange(keep.sum()) * min(_BLOCKS, keep.sum()) // keep.sum()
        work, time = examples[keep], spent[keep]
        return Steady(
            keys=tuple(int(key) for key in keys),
            examples=np.bincount(blocks, work).astype(np.float64),
            seconds=np.bincount(blocks, time).astype(np.float64),
            first_call_s=float(first_call),
            pauses_s=seen_s(trial, float(time.sum() / work.sum())),
            turns=turns,
        )

    # What came before the first turn warmed it up.
    in_turns = turn > 0
    if not in_turns.any():
        return cut(np.arange(len(spent)) >= (warm_up_ticks(cost) or 0))
    first = np.diff(turn, prepend=0) > 0
    if not (in_turns & ~first).any():
        return cut(in_turns)
    rested = cut(in_turns & ~first)
    waited = bool(awakening(first[in_turns], cost[in_turns]).any())
    # All of them, for a stall may have come first by chance.
    return replace(rested if waited else cut(in_turns), waited=waited, rested=rested)


def warm_up_ticks(cost: NDArray[np.float64]) -> int | None:
    """How many ticks at the start are warm-up; None where no steady part is reached.

    Of each tick ``cost`` has the seconds per example.
    """
    size = len(cost)
    if size < _STEADY_TICKS:
        return 0
    log_cost = np.log(cost)
    # Of the tail from each tick on; centred, so that squares lose no digits.
    tails, count = (log_cost - log_cost.mean())[::-1], np.arange(1, size + 1)
    mean = tails.cumsum() / count
    variance = np.maximum(0.0, (tails**2).cumsum() / count - mean**2)
    # Differences of a thousandth are not worth a tick.
    error = ((variance + 1e-6) / count)[::-1]
    cut = int(np.argmin(error[: size // 2 + 1]))
    # Single slow ticks anywhere are not warm-up: the beginning as a whole must differ.
    if cut == 0 or not _differ(log_cost[:cut], log_cost[cut:]):
        return 0
    return None if cut == size // 2 else cut


def settled(cost: NDArray[np.float64]) -> bool:
    """Whether a running trial, of such ticks so far, has reached its steady rate."""
    if len(cost) < _STEADY_TICKS or warm_up_ticks(cost) is None:
        return False
    half = _STEADY_TICKS // 2
    latest, before = np.median(cost[-half:]), np.median(cost[-2 * half : -half])
    return bool(abs(np.log(latest / before)) < _WARM_UP_DIFFERS)


def _differ(start: NDArray[np.float64], tail: NDArray[np.float64]) -> bool:
    # Three quarters of the beginning must lie to the same side of the rest.
    low, high = np.quantile(start, [0.25, 0.75], method="closest_observation")
    middle = float(np.median(tail))
    apart = max(float(low) - middle, middle - float(high))
    spread = _NORMAL_MAD * float(np.median(np.abs(tail - middle)))
    threshold = _WARM_UP_T * spread / math.sqrt(len(start))
    return apart > max(_WARM_UP_DIFFERS, threshold)
