"""How soon does each side of a race reach a loss?

Fewer steps are no faster learning, and neither are faster ones: what counts is the time
to a loss. Trials stand still between their turns, so that time is worked out: the
examples that a trial needed, over the examples per second of its side. A ratio of such
times has two doubts, how seeds differ and how rates do, and its interval holds both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev

from perfkit import intuition, units
from perfkit.errors import BadParameterError
from perfkit.experiments import unknown
from perfkit.findings.reading import losses, note_as
from perfkit.findings.record import Finding, Verdict
from perfkit.findings.report import Report, Shown, Table
from perfkit.findings.standing import LEAST_ROUNDS, SIDES, measurement
from perfkit.findings.text import plain
from perfkit.measure.measurement import Measurement
from perfkit.measure.statistics import Comparison, judge, student
from perfkit.measure.trial import NEW_EXAMPLES, Trial

# After so many examples, the mean loss since the one before.
Points = Sequence[tuple[float, float]]
_HEADINGS = ("side", "examples needed", "examples/s", "time", "times as fast")
_AGAIN = (
    "{names} saw examples again before it got there, so that is the loss of what it "
    "knows: give it data that do not repeat."
)
_NEXT = (
    "Give a loss that every side reaches, or the race more seconds; trainings that set "
    "a seed of their own show one start alone."
)


@dataclass(frozen=True, kw_only=True)
class Reached:
    """When one side reached the loss.

    Attributes:
        side: Its name.
        examples: That each trial needed, by its round; None where it did not get there.
        rate: Examples per second; None if unknown.
        again: Whether a trial saw examples again before it got there.
        compared: How many times as fast as the baseline it got there; None for that,
            and where nobody knows.
    """

    side: str
    examples: dict[int, float | None]
    rate: float | None
    again: bool = False
    compared: Comparison | None = None

    @property
    def needed(self) -> float | None:
        """Examples, the mean over its trials; None where one did not get there."""
        found = [one for one in self.examples.values() if one]
        if not found or len(found) < len(self.examples):
            return None
        return math.exp(fmean(map(math.log, found)))

    @property
    def seconds(self) -> float | None:
        """Seconds of training after the first step; None if unknown."""
        return self.needed / self.rate if self.needed and self.rate else None

    @property
    def row(self) -> tuple[str, ...]:
        """It as a row of the table."""
        got = sum(one is not None for one in self.examples.values())
        return (
            plain(self.side, 60),
            f"{self.needed:,.0f}"
            if self.needed
            else f"reached in {got} of {len(self.examples)} trials",
            units.significant(self.rate) if self.rate else units.UNKNOWN,
            units.seconds(self.seconds) if self.seconds else units.UNKNOWN,
            self.compared.interval if self.compared else units.UNKNOWN,
        )


@dataclass(frozen=True, repr=False)
class TimeToLoss(Shown):
    """When the sides of a race reached a loss.

    Attributes:
        of: The race, with what was expected of this.
        loss: That was to be reached.
        sides: The baseline first.
    """

    of: Finding
    loss: float
    sides: tuple[Reached, ...]

    @property
    def best(self) -> Comparison | None:
        """The side that got there soonest against the baseline; None if unknown."""
        known = [one.compared for one in self.sides if one.compared]
        # What is too noisy to say hides no side that is shown to be faster.
        return max(
            known, key=lambda one: (one.verdict == "faster", one.ratio), default=None
        )

    @property
    def report(self) -> Report:
        """What a person reads of it."""
        first, *others = (one.row for one in self.sides)
        title = f"To a loss of {units.significant(self.loss)} in training"
        raced = self.of.report
        return Report(
            verdict=self._verdict,
            stamp=raced.stamp,
            table=Table(title, _HEADINGS, ((*first[:-1], ""), *others)),
            foot=raced.foot,
        )

    @property
    def _verdict(self) -> Verdict:
        best, again = self.best, [one.side for one in self.sides if one.again]
        warned = _AGAIN.format(names=", ".join(plain(name, 60) for name in again))
        found = Verdict(
            headline=self._headline,
            sure="not known yet",
            warnings=(warned,) if again else (),
            next=_NEXT,
        )
        if best is None or best.sure == "not known yet":
            # Which of them is sooner may be known all the same.
            known = best is not None and not best.is_noise
            return replace(found, sure="likely") if known else found
        times = {one.side: one.seconds or 0.0 for one in self.sides}
        pair = (units.seconds(times[each]) for each in (best.variant, best.baseline))
        much = f"After {units.instead(*pair)} of training."
        winner = best.variant if best.verdict == "faster" else ""
        turned = best
        if best.verdict == "slower":
            # The headline says how many times as long.
            turned = replace(best, low=1 / best.high, high=1 / best.low)
        found = replace(found, much=much, interval=turned.ends, winner=winner)
        return replace(found, sure=best.sure, next="")

    @property
    def _headline(self) -> str:
        goal, first = f"a loss of {units.significant(self.loss)}", self.sides[0].side
        best, other = self.best, plain(first, 60)
        one = plain(best.variant, 60) if best else "any side"
        if best is None or best.verdict == "too noisy to say":
            return f"Whether {one} reaches {goal} sooner than {other} is not known yet."
        if best.verdict == "no difference shown":
            return f"{one} and {other} are not shown to reach {goal} at other times."
        sooner = "sooner" if best.verdict == "faster" else "later"
        if not units.is_known(best.low, best.high):
            return (
                f"{one} reaches {goal} {sooner} than {other}; by how much is not known "
                "yet."
            )
        if best.verdict == "faster":
            return (
                f"{one} reaches {goal} {units.times(best.ratio)} times as fast as "
                f"{other}."
            )
        long = units.times(1 / best.ratio)
        return f"{one} takes {long} times as long as {other} to {goal}."


def time_to_loss(
    finding: Finding,
    loss: float,
    *,
    against: str = "",
    guess: str = "",
    folder: str | Path | None = None,
) -> TimeToLoss:
    """Say how soon each side of a race reaches a loss, from what its trials noted.

    A trial is there once no later loss is above it; in between it is read off on a
    line. The first step is not counted. It is the loss of training: of new examples
    where the data do not repeat, otherwise a warning says so. Each round has a seed of
    its own, unless the training sets one, and fewer than three of them claim nothing.

    Args:
        finding: Of ``perfkit.race``.
        loss: The loss to reach, above what training can come down to.
        against: The side that the others are held against; "" for the first.
        guess: How many times as fast as that one the best of them gets there, such as
            ``"2x"``; it is kept for ``perfkit.guesses()``.
        folder: Where it is kept; None for ``perfkit-findings`` here.

    Raises:
        BadParameterError: It is no race, has no such side, or the loss is no number.
    """
    # Of functions that are still to be written, race() has found nothing.
    sides = finding.parameters.get(SIDES) if isinstance(finding, Finding) else None
    if not isinstance(sides, list | tuple) or len(sides) < 2:
        raise BadParameterError(
            "time_to_loss() takes what perfkit.race found, such as "
            "`time_to_loss(perfkit.race(make_a, make_b), 0.5)`."
        )
    try:
        is_number = math.isfinite(loss)
    except TypeError:
        is_number = False
    if not is_number:
        raise BadParameterError(f"loss is {loss!r}; give a number, such as 0.5.")
    names = list(map(str, sides))
    if against and against not in names:
        raise BadParameterError(unknown("side of this race", against, names))
    names.sort(key=lambda name: name != against)
    measured = measurement(finding)
    first, *others = (_reached(measured, name, loss) for name in names)
    compared = (_compared(measured, one, first) for one in others)
    found = TimeToLoss(replace(finding, guess=guess), loss, (first, *compared))
    question = f"time to a loss of {units.significant(loss)}"
    best = found.best
    told = f"{best.variant}: {best.interval}" if best else units.UNKNOWN
    intuition.keep(question, guess, told, best, folder)
    return found


def examples_to(loss: float, points: Points) -> float | None:
    """Examples until no later loss is above this one; None where that never comes.

    Args:
        loss: To be reached.
        points: After so many examples, the mean loss since the point before.
    """
    # What is no number is above any.
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


def _completed(measured: Measurement, side: str) -> list[Trial]:
    return [one for one in measured.of(side) if one.outcome == "completed"]


def _reached(measured: Measurement, side: str, loss: float) -> Reached:
    trials, timing = _completed(measured, side), measured.timing(side)
    examples = {one.round: examples_to(loss, losses(one)) for one in trials}
    new = {
        one.round: note_as(float, one.notes.get(NEW_EXAMPLES)) or math.inf
        for one in trials
    }
    return Reached(
        side=side,
        examples=examples,
        rate=timing.rate if timing else None,
        again=any(one > new[number] for number, one in examples.items() if one),
    )


def _compared(measured: Measurement, one: Reached, first: Reached) -> Reached:
    """The same with its ratio to the first side, where both always got there."""
    rates = measured.compare(one.side, first.side)
    if rates is None or not (one.needed and first.needed):
        return one
    # Trials that begin with the same loss had the same seed, and count as one.
    seeds = dict[str, float]()
    for trial in _completed(measured, first.side):
        mine, theirs = (side.examples.get(trial.round) for side in (one, first))
        if mine and theirs:
            seeds[f"{losses(trial)[0][1]:.4g}"] = math.log(theirs / mine)
    if len(seeds) < LEAST_ROUNDS:
        return one
    middle = fmean(seeds.values()) + math.log(rates.ratio)
    error = stdev(seeds.values()) / math.sqrt(len(seeds))
    of_rates = math.log(rates.high / rates.low) / 2
    half = math.hypot(student(len(seeds) - 1) * error, of_rates)
    low, high = middle - half, middle + half
    floor = math.log(measured.noise_floor or 1.0)
    ratio = Comparison(
        variant=one.side,
        baseline=first.side,
        ratio=math.exp(middle),
        low=math.exp(low),
        high=math.exp(high),
        verdict=judge(low, middle, high, floor),
        rounds=len(seeds),
    )
    return replace(one, compared=ratio)
