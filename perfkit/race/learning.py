"""How the sides of a race learn: their losses, compared, and the time to a loss.

Losses waver from batch to batch, and two versions may see theirs in another order, so
losses differ only where they lie further apart than that lets expect.
"""

import contextlib
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from perfkit import units
from perfkit.diagnosis.training import list_callbacks
from perfkit.errors import BadParameterError
from perfkit.experiments import unknown
from perfkit.findings.reading import losses
from perfkit.findings.record import Finding, Verdict
from perfkit.findings.report import Report, Shown, Table
from perfkit.findings.standing import LEAST_ROUNDS, SIDES, measurement
from perfkit.findings.text import plain
from perfkit.measure.measurement import Measurement
from perfkit.measure.spread import Spread
from perfkit.measure.statistics import Comparison, Rounds, comparison
from perfkit.measure.tick import Note
from perfkit.measure.trial import LOSSES

# A note of a trial: how its model was compiled.
COMPILED = "compiled"
# Every one of the first steps notes its loss, later ones ever more seldom.
_EACH, _SELDOMER, _MOST = 5, 1.3, 64
# So many of the first losses are compared; means lie apart where they differ by so many
# standard errors and by this share.
_FIRST, _ERRORS, _SHARE = 5, 4.0, 0.02
# Losses that differ by no more are the same but for rounding.
_ROUNDING = 1e-4

# After so many examples, the mean loss since the point before.
Points = Sequence[tuple[float, float]]
# Of each round of a side: the examples that it needed and the seconds that they took;
# None where it did not get there.
_Needed = dict[int, tuple[float, float] | None]
_NEXT = (
    "Give a loss that every side reaches, or the race more seconds; trainings that set "
    "a seed of their own show one start alone."
)


@dataclass(frozen=True)
class Difference:
    """Something that two sides do not do alike.

    Attributes:
        said: What, after "instead of" what: the end of a sentence.
        other_work: Whether an example of one is no example of the other.
    """

    said: str
    other_work: bool = False


class Learning:
    """Makes a training, and notes how it learns."""

    def __init__(self, maker: Callable[[], Any], batch: int = 1) -> None:
        self._maker, self._batch = maker, batch
        self._news: dict[str, Any] = {}
        self._losses: list[tuple[int, float]] = []
        # Steps of earlier epochs, of this one, and of this one at the last noted loss;
        # the sum of this epoch's losses by then.
        self._before = self._step = self._noted = 0
        self._sum, self._next = 0.0, 1.0

    def __call__(self) -> Any:
        """Make the training, with one more callback."""
        training = self._maker()
        if not isinstance(training, tuple) or len(training) not in (2, 3):
            return training
        model, data, *rest = training
        arguments = dict(rest[0]) if rest else {}
        arguments["callbacks"] = _with(arguments.get("callbacks"), self._callback())
        return model, data, arguments

    def news(self) -> Iterator[Note]:
        """Yield what became known since the last call."""
        news, self._news = self._news, {}
        yield from (Note(name, value) for name, value in news.items())

    def _callback(self) -> Any:
        from keras.callbacks import LambdaCallback

        def begin(logs: Any) -> None:
            if COMPILED not in self._news and not self._losses:
                self._news[COMPILED] = describe(callback.model)

        callback = LambdaCallback(
            on_train_begin=begin,
            on_epoch_begin=lambda epoch, logs: self._begin_epoch(),
            on_train_batch_end=lambda batch, logs: self.reach(batch + 1, logs),
        )
        return callback

    def _begin_epoch(self) -> None:
        self._before += self._step
        self._step = self._noted = 0
        self._sum = 0.0

    def reach(self, step: int, logs: Any) -> None:
        """Note that ``step`` steps of this epoch are done, with their mean loss."""
        self._step = step
        done = self._before + step
        loss = (logs or {}).get("loss")
        if done < self._next or loss is None or len(self._losses) >= _MOST:
            return
        total = float(loss) * step
        between = (total - self._sum) / (step - self._noted)
        self._losses.append((done * self._batch, between))
        self._noted, self._sum = step, total
        self._next = done + max(1.0, (_SELDOMER - 1) * done * (done >= _EACH))
        self._news[LOSSES] = list(self._losses)


def _with(callbacks: Any, callback: Any) -> Any:
    """Add a callback; a ``CallbackList`` stays one."""
    import keras

    if isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks.callbacks.append(callback)
        return callbacks
    return [*list_callbacks(callbacks), callback]


def describe(model: Any) -> dict[str, Any]:
    """Describe by what a model learns, in words and numbers alone."""
    from keras.optimizers.schedules import LearningRateSchedule

    optimizer = model.optimizer
    rate: Any = getattr(optimizer, "learning_rate", None)
    with contextlib.suppress(TypeError, ValueError):
        rate = float(rate)
    # Of a schedule Keras gives the rate at this step.
    schedule = getattr(optimizer, "_learning_rate", None)
    if isinstance(rate, float) and isinstance(schedule, LearningRateSchedule):
        rate = f"{type(schedule).__name__} from {units.significant(rate)}"
    loss = getattr(model, "loss", None)
    return {
        "optimizer": type(optimizer).__name__,
        "learning rate": rate if isinstance(rate, float | str) else "a schedule",
        "loss": loss if isinstance(loss, str) else type(loss).__name__,
    }


def in_learning(
    measured: Measurement, side: str, baseline: str
) -> Iterator[Difference]:
    """What it does otherwise by how it learns: as compiled, and its first losses."""
    mine, theirs = (_compiled(measured, each) for each in (side, baseline))
    for name in sorted(mine.keys() & theirs.keys()):
        if mine[name] != theirs[name]:
            now, before = (_set_to(each[name]) for each in (mine, theirs))
            yield Difference(f"its {name} is {now} instead of {before}")
    one, other = first_losses(measured, side, baseline)
    finite = [all(map(math.isfinite, some)) for some in (one, other)]
    enough = len(one) > 1 and len(other) > 1
    if enough and (_apart(one, other) if all(finite) else any(finite)):
        now, before = map(_mean, (one, other))
        yield Difference(f"its first losses are {now} instead of {before}")


def _mean(losses: list[float]) -> str:
    mean = statistics.fmean(losses)
    return units.significant(mean) if math.isfinite(mean) else "no numbers"


def first_losses(
    measured: Measurement, side: str, baseline: str
) -> tuple[list[float], list[float]]:
    """The first losses of all trials of both; none where its loop tells none.

    Where one tells them of several steps at a time, the other's are taken over as many.
    """
    told = losses_of(measured, side), losses_of(measured, baseline)
    ends = [[n for n, _ in next(iter(each.values()), ())[:_FIRST]] for each in told]
    coarse = max(filter(None, ends), key=itemgetter(0), default=[])
    one, other = (
        [loss for trial in each.values() for loss in _over(coarse, trial)]
        for each in told
    )
    return one, other


def _over(ends: list[float], told: list[tuple[float, float]]) -> list[float]:
    """The mean losses between these numbers of examples, as far as they were told."""
    first = told[:_FIRST]
    if not ends or first[0][0] >= ends[0]:
        return [loss for _, loss in first]
    counts, means = zip(*told, strict=True)
    sums = np.cumsum(np.diff(counts, prepend=0) * means)
    known = [0.0, *(end for end in ends if end <= counts[-1])]
    between = np.interp(known, (0, *counts), (0, *sums))
    found: list[float] = (np.diff(between) / np.diff(known)).tolist()
    return found


def losses_of(measured: Measurement, side: str) -> dict[int, list[tuple[float, float]]]:
    """Of a side in each round: after so many examples, the mean loss up to there."""
    told = {trial.round: losses(trial) for trial in measured.of(side)}
    return {number: one for number, one in told.items() if one}


def alike(measured: Measurement, side: str, baseline: str) -> bool:
    """Whether the first losses are the same but for rounding, in each round."""
    one, other = (losses_of(measured, each) for each in (side, baseline))
    common = one.keys() & other.keys()
    return bool(common) and all(
        abs(mine - theirs) <= _ROUNDING * max(abs(theirs), _ROUNDING)
        for number in common
        for (_, mine), (_, theirs) in zip(
            one[number][:_FIRST], other[number][:_FIRST], strict=False
        )
    )


def _apart(one: list[float], other: list[float]) -> bool:
    apart = abs(statistics.fmean(one) - statistics.fmean(other))
    # Each round may see the same batches: more of them are no more losses.
    count = min(len(one), len(other), _FIRST)
    error = math.hypot(*map(statistics.stdev, (one, other))) / math.sqrt(count)
    scale = abs(statistics.fmean(other))
    return apart > _ERRORS * error and apart > _SHARE * scale


def _compiled(measured: Measurement, side: str) -> dict[str, Any]:
    told = (trial.notes.get(COMPILED) for trial in measured.of(side))
    return next((one for one in told if isinstance(one, dict)), {})


def _set_to(value: Any) -> str:
    return units.significant(value) if isinstance(value, float) else str(value)


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
    rounds = Rounds(side, first, logs, within=0 * ones, turns=ones)
    known = Spread.noted(measured.notes)
    return comparison(rounds, known, measured.noise_floor)


def _row(side: str, needed: _Needed, ratios: dict[str, str]) -> tuple[str, ...]:
    name, ratio = plain(side, 60), ratios.get(side, units.UNKNOWN)
    reached = [each for each in needed.values() if each]
    if not reached or len(reached) < len(needed):
        some = f"reached in {len(reached)} of {len(needed)} trials"
        return name, some, units.UNKNOWN, ratio
    examples, seconds = map(statistics.median, zip(*reached, strict=True))
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
