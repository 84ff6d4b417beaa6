"""What pauses that come again add to each example, such as the end of an epoch.

A trial sees few of them, and some last several times as long as others for reasons of
their own: a thread that still sleeps when its pipeline is dropped, say. So what a pause
takes in any case is the shortest of all trials of the variant. What they take beyond
that is the mean over all variants, but for one whose pauses are shown to differ from
the others': that keeps its own. Where a variant is about those very pauses, each of its
trials counts as it was.

TensorFlow's tuning thread sleeps at most about as long as its pipeline has lived. While
trials take turns, a pipeline lives through those of others as well, and a pause may be
many times as long as it would be. So beyond the shortest no pause counts for more than
what comes between two of them takes in the variant's own time.
"""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from perfkit.measure.trial import Trial

# Standard deviations of the rank sum from which on pauses are shown to differ.
_APART = 2.8
# The shortest of fewer is no measure for what the others take beyond it.
_FEW = 4


def all_seen(trial: Trial) -> bool:
    """Whether each pause that belongs to the rate has come at least once."""
    return all(trial.pauses.get(label) for label in trial.recurring)


def seen_s(trial: Trial, example_s: float) -> float:
    """Seconds that a trial's own pauses add to each of its examples.

    Args:
        trial: Which has seen each of its pauses.
        example_s: Seconds of an example, without pauses.
    """
    each = {}
    for label, (every, _) in trial.recurring.items():
        pauses = trial.pauses[label]
        most = min(pauses) + every * example_s
        each[label] = statistics.fmean(min(one, most) for one in pauses)
    return _shared_out(trial, each, example_s)


@dataclass(frozen=True)
class _Beyond:
    """What pauses take beyond the shortest: the mean, and the standard error of that.

    Those of several variants that are alike are one and the same object.
    """

    mean_s: float
    error_s: float

    @classmethod
    def of(cls, groups: Sequence[Sequence[float]]) -> _Beyond:
        """Take it from seconds beyond the shortest of each group.

        A pause that is alone is the shortest, and tells nothing of the others.
        """
        several = [group for group in groups if len(group) > 1]
        seen = _together(several)
        if not seen:
            return cls(0.0, 0.0)
        # The shortest of few is no floor: so it is where tails fall off exponentially.
        mean = sum(seen) / (len(seen) - len(several))
        return cls(mean, statistics.stdev(seen) / len(seen) ** 0.5)


class Usual:
    """The usual pauses of the variants of a run.

    Args:
        trials: The completed trials by variant, those of a twin with what it repeats.
        apart: The variants whose pauses are known to be others than the rest's.
    """

    def __init__(
        self, trials: Mapping[str, Sequence[Trial]], apart: Collection[str] = ()
    ) -> None:
        self._least = {
            (variant, label): min(seconds for seconds, _ in pauses)
            for variant, mine in trials.items()
            for label, pauses in _by_label(mine).items()
        }
        beyond: dict[str, dict[str, list[float]]] = {}
        for variant, mine in trials.items():
            for label, pauses in _by_label(mine).items():
                least = self._least[variant, label]
                own = beyond.setdefault(label, {})
                own[variant] = [min(one - least, most) for one, most in pauses]
        self._beyond = {
            (variant, label): found
            for label, own in beyond.items()
            for variant, found in _usual(own, apart).items()
        }

    def usual_s(self, variant: str, trial: Trial, example_s: float) -> float:
        """Seconds that usual pauses add to each example of one of its trials."""
        each = {
            label: self._least[variant, label]
            + min(self._beyond[variant, label].mean_s, every * example_s)
            for label, (every, _) in trial.recurring.items()
        }
        return _shared_out(trial, each, example_s)

    def errors_s(self, variant: str, trial: Trial) -> dict[int, float]:
        """Standard errors of what usual pauses add to each example, by their source.

        An error that two variants share is in both alike: it has the same key.
        """
        found: dict[int, float] = {}
        for label, (every, _) in trial.recurring.items():
            beyond = self._beyond[variant, label]
            if beyond.mean_s > every * _example_s(trial):
                continue
            found[id(beyond)] = found.get(id(beyond), 0.0) + beyond.error_s / every
        return found


def _usual(
    own: Mapping[str, Sequence[float]], apart: Collection[str]
) -> dict[str, _Beyond]:
    """What is usual for each variant: of all together, or its own where it differs."""
    rest = own.keys() - set(apart)
    differ = {v for v in rest if _is_apart(own[v], [own[o] for o in rest if o != v])}
    alike = _Beyond.of([own[variant] for variant in rest - differ])
    return {
        variant: alike if variant in rest - differ else _Beyond.of([mine])
        for variant, mine in own.items()
    }


def _together(some: Iterable[Sequence[float]]) -> list[float]:
    return [one for each in some for one in each]


def _is_apart(one: Sequence[float], others: Iterable[Sequence[float]]) -> bool:
    """Whether most of one lie on the same side of most of the others (a rank sum)."""
    other = _together(each for each in others if len(each) >= _FEW)
    above = sum((a > b) - (a < b) for a in one for b in other) / 2
    n, m = len(one), len(other)
    return abs(above) > _APART * math.sqrt(n * m * (n + m + 1) / 12)


def _by_label(trials: Iterable[Trial]) -> dict[str, list[tuple[float, float]]]:
    """Seconds of each pause, and what comes between two of them takes."""
    found: dict[str, list[tuple[float, float]]] = {}
    for trial in trials:
        for label, (every, _) in trial.recurring.items():
            pauses, between = trial.pauses.get(label, ()), every * _example_s(trial)
            found.setdefault(label, []).extend((one, between) for one in pauses)
    return {label: pauses for label, pauses in found.items() if pauses}


def _example_s(trial: Trial) -> float:
    """Seconds of an example of a trial, about."""
    each = [
        (end - begin) / examples
        for (begin, _), (end, examples) in itertools.pairwise(trial.ticks)
        if examples
    ]
    return statistics.median(each) if each else 0.0


def _shared_out(trial: Trial, each: Mapping[str, float], example_s: float) -> float:
    added = sum(
        (each[label] - within * example_s) / every
        for label, (every, within) in trial.recurring.items()
    )
    return max(0.0, added)
