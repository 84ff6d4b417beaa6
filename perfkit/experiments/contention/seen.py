"""One trial's steady work, with what was sampled while it lasted.

A sample tells of the time since the one before it. Only those count whose whole time
lies in the work: no set-up, no first call and no other trial is in them.
"""

from __future__ import annotations

import itertools
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perfkit.measure.trial import Trial

    Samples = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True)
class Seen:
    """One trial's steady work: its steps and the samples taken meanwhile.

    Attributes:
        steps: Seconds of each step.
        waited: Seconds of them that it waited for input.
        samples: What was sampled, by name.
    """

    steps: tuple[float, ...]
    waited: float
    samples: dict[str, list[float]]

    def mean(self, name: str) -> float | None:
        """The mean of a reading; None where there is none."""
        values = self.samples.get(name)
        return statistics.fmean(values) if values else None

    def last(self, name: str) -> float | None:
        """The last value of a reading that is taken once in a while."""
        values = self.samples.get(name)
        return values[-1] if values else None


def seen_in(trial: Trial, samples: Samples) -> Seen | None:
    """Read a trial without its first call; None where nothing is left."""
    lengths = [
        (now - before, now)
        for (before, _), (now, examples) in itertools.pairwise(trial.ticks)
        if examples and now > before
    ]
    if len(lengths) < 3:
        return None
    began = trial.started_s + lengths[0][1]
    ended = trial.started_s + lengths[-1][1]
    return Seen(
        steps=tuple(length for length, _ in lengths[1:]),
        waited=sum(trial.parts.get("input", ())[1:]),
        samples=_within(samples, began, ended),
    )


def _within(samples: Samples, began: float, ended: float) -> dict[str, list[float]]:
    """The samples whose whole time, back to the one before, lies in the span."""
    times = samples.get("t", ())
    inside = [
        at
        for at, (before, now) in enumerate(itertools.pairwise(times), start=1)
        if before is not None and now is not None and began <= before and now <= ended
    ]
    return {
        name: found
        for name, column in samples.items()
        if (
            found := [
                value
                for at in inside
                if at < len(column) and (value := column[at]) is not None
            ]
        )
    }
