"""What pauses that come again add to each example, such as the end of an epoch.

A trial sees few of them, and some last several times as long as others for reasons of
their own: a thread that still sleeps when its pipeline is dropped, say. So what a pause
takes in any case is the shortest of all trials of the variant. What they take beyond
that is drawn to what is usual over all variants, as few pauses say little. Where a
variant is about those very pauses, each of its trials counts as it was.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perfkit.measure.trial import Trial

# The usual of all variants counts like so many pauses of each.
_BORROWED = 2.0


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
        all_: dict[str, list[float]] = {}
        own: dict[tuple[str, str], list[float]] = {}
        for variant, mine in trials.items():
            for label, pauses in _by_label(mine).items():
                beyond = [one - self._least[variant, label] for one in pauses]
                all_.setdefault(label, []).extend(beyond)
                own[variant, label] = beyond
        self._beyond = {
            (variant, label): _drawn_to(statistics.fmean(all_[label]), beyond)
            for (variant, label), beyond in own.items()
        }

    def usual_s(self, variant: str, trial: Trial, example_s: float) -> float:
        """Seconds that usual pauses add to each example of one of its trials."""
        each = {
            label: self._least[variant, label] + self._beyond[variant, label]
            for label in trial.recurring
        }
        return _shared_out(trial, each, example_s)


def _drawn_to(usual: float, own: Sequence[float]) -> float:
    """The mean of a variant's own, drawn to the usual where there are few."""
    return (sum(own) + _BORROWED * usual) / (len(own) + _BORROWED)


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
