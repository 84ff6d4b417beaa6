"""One experiment that was run in several visits, as the one run that it is about.

What a machine does changes from minute to minute. A passport measures each thing more
than once, with other things in between, so that its own doubt holds some of that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perfkit.findings.standing import measurement
from perfkit.passports.gathered import joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.findings.record import Finding
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.trial import Trial

# When a visit began on the passport's clock, and what it found.
Visit = tuple[float, "Finding"]


def together(visits: Sequence[Visit]) -> Finding:
    """Make one finding of the visits of an experiment: its rounds are all of theirs.

    Args:
        visits: In order; at least one.

    Returns:
        The last one with the trials and samples of all, on the passport's clock, and
        what was worked out of them worked out anew.
    """
    measured = _measured(visits)
    return replace(
        visits[-1][1],
        trials=measured.trials,
        samples=measured.samples,
        timings=measured.timings,
        comparisons=measured.comparisons,
        noise_floor=measured.noise_floor,
        budget_s=sum(found.budget_s for _, found in visits),
    )


def _measured(visits: Sequence[Visit]) -> Measurement:
    found = [finding for _, finding in visits]
    arms = {arm.name: arm for one in found for arm in measurement(one).arms}
    columns = joined((began, one.samples) for began, one in visits)
    return replace(
        measurement(found[-1]),
        arms=tuple(arms.values()),
        trials=tuple(_trials(visits)),
        samples={name: tuple(values) for name, values in columns.items()},
    )


def _trials(visits: Sequence[Visit]) -> Iterator[Trial]:
    """All trials; no round of one visit bears the number of another's."""
    before = 0
    for began, found in visits:
        yield from (_moved(trial, before, began) for trial in found.trials)
        before += max((trial.round for trial in found.trials), default=0)


def _moved(trial: Trial, rounds: int, seconds: float) -> Trial:
    number = 0 if trial.is_try else trial.round + rounds
    return replace(trial, round=number, started_s=trial.started_s + seconds)
