"""How soon does each side of a race reach a loss?

Neither fewer examples nor faster steps alone make a training faster: the time to a loss
does. Trials stand still between their turns, so that time is worked out: the examples
that a trial needed, over its examples per second. Each round has a seed of its own,
and the engine compares the times of its rounds as it compares their rates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from perfkit import units
from perfkit.errors import BadParameterError
from perfkit.experiments import unknown
from perfkit.findings.reading import losses
from perfkit.findings.record import Finding, Verdict
from perfkit.findings.report import Report, Shown, Table
from perfkit.findings.standing import LEAST_ROUNDS, SIDES, measurement
from perfkit.findings.text import plain
from perfkit.measure import statistics
from perfkit.measure.measurement import Measurement
from perfkit.measure.spread import Spread
from perfkit.measure.statistics import Comparison

# After so many examples, the mean loss since the point before.
Points = Sequence[tuple[float, float]]
# Of each round of a side: the examples that it needed and the seconds that they took;
# None where it did not get there.
_Needed = dict[int, tuple[float, float] | None]
_NEXT = (
    "Give a loss that every side reaches, or the race more seconds; trainings that set "
    "a seed of their own show one start alone."
)


@dataclass(frozen=True, repr=False)
class TimeToLoss(Shown):
    """When the sides of a race reached a loss.

    Attributes:
        best: The side that got there soonest against the baseline; None if unknown.
    """

    best: Comparison | None
    _report: Report

    @property
    def report(self) -> Report:
        """What a person reads of it."""
        return self._report


def time_to_loss(
    finding: Finding,
    loss: float,
    *,
    against: str = "",
    guess: str = "",
) -> TimeToLoss:
    """Say how soon each side of a race reaches a loss, from what its trials noted.

    A trial is there once no later loss is above it. The first step is not counted. It
    is the loss of training: give data that do not repeat, or it is that of examples
    that were seen before. Fewer than three rounds, or seeds, claim nothing.

    Args:
        finding: Of ``perfkit.race``.
        loss: The loss to reach, above what training can come down to.
        against: The side that the others are compared with; "" for the first.
        guess: How many times as fast as that one the best of them gets there, such as
            ``"2x"``; it stands in the report.

    Raises:
        BadParameterError: It is no race, has no such side, or the loss is no number.
    """
    # Of functions that are still to be written, race() returns no finding.
    sides = finding.parameters.get(SIDES) if isinstance(finding, Finding) else None
    if not isinstance(sides, list | tuple) or len(sides) < 2:
        raise BadParameterError(
            "time_to_loss() takes what perfkit.race found, such as "
            "`time_to_loss(perfkit.race(make_a, make_b), 0.5)`."
        )
    if not isinstance(loss, int | float | np.number) or not math.isfinite(loss):
        raise BadParameterError(f"loss is {loss!r}; give a number, such as 0.5.")
    names = list(map(str, sides))
    if against and against not in names:
        raise BadParameterError(unknown("side of this race", against, names))
    names.sort(key=lambda name: name != against)
    measured = measurement(finding)
    needed = {name: _needed(measured, name, loss) for name in names}
    first, *others = names
    known = [_compare(measured, needed, other, first) for other in others]
    comparisons = [each for each in known if each]
    # What is too noisy to say hides no side that is shown to be faster.
    best = max(
        comparisons, key=lambda c: (c.verdict == "faster", c.ratio), default=None
    )
    goal = f"a loss of {units.significant(loss)}"
    ratios = {each.variant: each.interval for each in comparisons} | {first: ""}
    rows = {name: _row(name, needed[name], ratios) for name in names}
    raced = replace(finding, guess=guess).report
    return TimeToLoss(
        best,
        Report(
            verdict=_verdict(goal, best, rows),
            stamp=raced.stamp,
            table=Table(
                f"To {goal} in training",
                ("side", "examples needed", "time", "times as fast"),
                tuple(rows.values()),
            ),
            foot=raced.foot,
        ),
    )


def examples_to(loss: float, points: Points) -> float | None:
    """Examples until no later loss is above this one; None where that never comes."""
    # A loss that is no number is above any.
    above = [at for at, (_, mean) in enumerate(points) if not mean <= loss]
    last = above[-1] if above else -1
    if last + 1 == len(points):
        return None
    if last < 0:
        return points[0][0]
    (x, high), (then, low) = (_middle(points, at) for at in (last, last + 1))
    share = (high - loss) / (high - low) if math.isfinite(high) else 1.0
    return float(x * (then / x) ** share)


def _middle(points: Points, at: int) -> tuple[float, float]:
    """The middle of the stretch that a mean is of, and the mean."""
    before = points[at - 1][0] if at else 0.0
    return (before + points[at][0]) / 2, points[at][1]


def _needed(measured: Measurement, side: str, loss: float) -> _Needed:
    needed: _Needed = {}
    for number, (trial, steady) in measured.counted(side).items():
        examples = examples_to(loss, losses(trial))
        needed[number] = (examples, examples / steady.rate) if examples else None
    return needed


def _compare(
    measured: Measurement, needed: dict[str, _Needed], side: str, first: str
) -> Comparison | None:
    """Compare two sides' times; None where a trial of theirs did not get there."""
    trials, ratios = measured.counted(first), dict[str, float]()
    for number in needed[side].keys() & needed[first].keys():
        mine, theirs = needed[side][number], needed[first][number]
        if not mine or not theirs:
            return None
        # Trials that begin with the same loss had the same seed, and count as one.
        seed = f"{losses(trials[number][0])[0][1]:.4g}"
        ratios[seed] = theirs[1] / mine[1]
    if len(ratios) < LEAST_ROUNDS:
        return None
    logs, ones = np.log(list(ratios.values())), np.ones(len(ratios))
    rounds = statistics.Rounds(side, first, logs, within=0 * ones, turns=ones)
    known = Spread.noted(measured.notes)
    return statistics.comparison(rounds, known, measured.noise_floor)


def _row(side: str, needed: _Needed, ratios: dict[str, str]) -> tuple[str, ...]:
    name, ratio = plain(side, 60), ratios.get(side, units.UNKNOWN)
    reached = [each for each in needed.values() if each]
    if not reached or len(reached) < len(needed):
        some = f"reached in {len(reached)} of {len(needed)} trials"
        return name, some, units.UNKNOWN, ratio
    examples, seconds = map(median, zip(*reached, strict=True))
    return name, f"{examples:,.0f}", units.seconds(seconds), ratio


def _verdict(
    goal: str, best: Comparison | None, rows: dict[str, tuple[str, ...]]
) -> Verdict:
    if best is None or best.verdict == "too noisy to say":
        return Verdict(
            headline=f"Which side reaches {goal} sooner is not known yet.",
            sure="not known yet",
            next=_NEXT,
        )
    (side, _, time, _), (first, _, before, _) = rows[best.variant], rows[best.baseline]
    headline = f"To {goal}, {side} is {best.as_fast_as} {first}."
    if best.is_noise:
        headline = f"To {goal}, {side} and {first} show no difference."
    return Verdict(
        headline=headline,
        much=f"It takes {units.instead(time, before)} of training.",
        sure="likely" if best.sure == "not known yet" else best.sure,
        interval=best.ends,
        winner=best.variant if best.verdict == "faster" else "",
    )
