"""What pauses that come again add to each example, such as the end of an epoch.

A trial sees few of them, and some last several times as long as others for reasons of
their own: a thread that still sleeps when its pipeline is dropped, say. So what a pause
takes in any case is the shortest of all trials of the variant. What they take beyond
that is the mean over all variants, but for one whose pauses are shown to differ from
the others': that keeps its own. Where a variant is about those very pauses, each of its
trials counts as it was.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perfkit.measure.trial import Trial

# Standard deviations of the rank sum from which on pauses are shown to differ.
_APART = 2.8


def all_seen(trial: Trial) -> bool:
    """Whether each pause that belongs to the rate has come at least once."""
    return all(trial.pauses.get(label) for label in trial.recurring)


def seen_s(trial: Trial, example_s: float) -> float:
    """Seconds that a trial's own pauses add to each of its examples.

    Args:
        trial: Which has seen each of its pauses.
        example_s: Seconds of an example, without pauses.
    """
    each = {label: statistics.fmean(trial.pauses[label]) for label in trial.recurring}
    return _shared_out(trial, each, example_s)


class Usual:
    """The usual pauses of the variants of a run.

    Args:
        trials: The completed trials by variant, those of a twin with what it repeats.
    """

    def __init__(self, trials: Mapping[str, Sequence[Trial]]) -> None:
        self._least = {
            (variant, label): min(pauses)
            for variant, mine in trials.items()
            for label, pauses in _by_label(mine).items()
        }
        beyond: dict[str, dict[str, list[float]]] = {}
        for variant, mine in trials.items():
            for label, pauses in _by_label(mine).items():
                least = self._least[variant, label]
                own = beyond.setdefault(label, {})
                own[variant] = [one - least for one in pauses]
        self._beyond = {
            (variant, label): mean
            for label, own in beyond.items()
            for variant, mean in _usual(own).items()
        }

    def usual_s(self, variant: str, trial: Trial, example_s: float) -> float:
        """Seconds that usual pauses add to each example of one of its trials."""
        each = {
            label: self._least[variant, label] + self._beyond[variant, label]
            for label in trial.recurring
        }
        return _shared_out(trial, each, example_s)


def _usual(own: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The mean of each variant: of all together, or its own where that is another."""
    apart = {
        variant
        for variant, mine in own.items()
        if _is_apart(
            mine, [one for v, theirs in own.items() if v != variant for one in theirs]
        )
    }
    alike = [one for variant in own.keys() - apart for one in own[variant]]
    return {
        variant: statistics.fmean(mine if variant in apart else alike)
        for variant, mine in own.items()
    }


def _is_apart(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether most of one lie on the same side of most of the other (a rank sum)."""
    above = sum((a > b) - (a < b) for a in one for b in other) / 2
    n, m = len(one), len(other)
    return abs(above) > _APART * math.sqrt(n * m * (n + m + 1) / 12)


def _by_label(trials: Iterable[Trial]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for trial in trials:
        for label in trial.recurring:
            found.setdefault(label, []).extend(trial.pauses.get(label, ()))
    return {label: pauses for label, pauses in found.items() if pauses}


def _shared_out(trial: Trial, each: Mapping[str, float], example_s: float) -> float:
    added = sum(
        (each[label] - within * example_s) / every
        for label, (every, within) in trial.recurring.items()
    )
    return max(0.0, added)
