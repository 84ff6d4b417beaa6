"""How the sides of a race learn: their losses, compared, and the time to a loss.

Losses waver from batch to batch, and two versions may see theirs in another order, so
losses differ only where they lie further apart than that lets expect.
"""

import contextlib
import itertools
import math
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from perfkit import units
from perfkit.engine.measurement import Measurement
from perfkit.engine.spread import Spread
from perfkit.engine.statistics import Comparison, Rounds, comparison
from perfkit.engine.trial import LOSSES, Note
from perfkit.errors import BadParameterError
from perfkit.findings.reading import losses
from perfkit.findings.record import Finding, frame
from perfkit.findings.standing import LEAST_ROUNDS, SIDES, measurement
from perfkit.training.diagnose.epochs import to_callback
from perfkit.training.diagnose.training import list_callbacks, load_keras

if TYPE_CHECKING:
    from pandas import DataFrame

# A note of a trial: how its model was compiled.
COMPILED = "compiled"
# A note of a trial: seconds from its start until its first step was done.
FIRST_STEP = "first step"
# Every one of the first steps notes its loss, later ones ever more seldom.
_EACH, _SELDOMER, _MOST = 5, 1.3, 64
# So many of the first losses are compared; means lie apart where they differ by so many
# standard errors and by this share.
_FIRST, _ERRORS, _SHARE = 5, 4.0, 0.02
# Where a word begins in the name of a class; functions have the same words.
_CAPITAL = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Losses that differ by no more are the same but for rounding.
_ROUNDING = 1e-4

# After so many examples, the mean loss since the point before.
Points = Sequence[tuple[float, float]]


class Difference(NamedTuple):
    """What two sides do not do alike, and whether their examples are not the same."""

    sentence: str
    other_work: bool = False


class Learning:
    """Makes a training, and notes how it learns."""

    def __init__(self, maker: Callable[[], Any], batch: int = 1) -> None:
        self._maker, self._batch = maker, batch
        self._began = time.perf_counter()
        self._news: dict[str, Any] = {}
        self._losses: list[tuple[int, float]] = []
        # Steps of earlier epochs, of this one, and of this one at the last noted loss;
        # then the sum of this epoch's losses up to there.
        self._before = self._step = self._noted_step = 0
        self._sum, self._next = 0.0, 1.0

    def __call__(self) -> Any:
        """Make the training, with one more callback."""
        training = self._maker()
        if not isinstance(training, tuple) or len(training) not in (2, 3):
            return training
        model, data, *options = training
        arguments = dict(options[0]) if options else {}
        self._news[COMPILED] = describe(model)
        callbacks = arguments.get("callbacks")
        callback = to_callback(
            on_epoch_begin=lambda epoch, logs: self._begin_epoch(),
            on_train_batch_end=lambda batch, logs: self.reach(batch + 1, logs),
        )
        if isinstance(callbacks, load_keras().callbacks.CallbackList):
            # Appended, because fit would add a progress bar to a list of its own.
            callbacks.callbacks.append(callback)
        else:
            arguments["callbacks"] = [*list_callbacks(callbacks), callback]
        return model, data, arguments

    def news(self) -> Iterator[Note]:
        """Yield what became known since the last call."""
        news, self._news = self._news, {}
        yield from (Note(name, value) for name, value in news.items())

    def _begin_epoch(self) -> None:
        self._before += self._step
        self._step = self._noted_step = 0
        self._sum = 0.0

    def reach(self, step: int, logs: Any) -> None:
        """Note that ``step`` steps of this epoch are done, with their mean loss."""
        self._step = step
        steps = self._before + step
        loss = (logs or {}).get("loss")
        if steps < self._next or loss is None or len(self._losses) >= _MOST:
            return
        total = float(loss) * step
        if not self._losses:
            self._news[FIRST_STEP] = time.perf_counter() - self._began
        between = (total - self._sum) / (step - self._noted_step)
        self._losses.append((steps * self._batch, between))
        self._noted_step, self._sum = step, total
        self._next = _SELDOMER * steps if steps >= _EACH else steps + 1
        self._news[LOSSES] = list(self._losses)


def describe(model: Any) -> dict[str, Any]:
    """Describe by what a model learns, in words and numbers alone."""
    keras = load_keras()
    # What is no model is refused later, in a sentence.
    optimizer = getattr(model, "optimizer", None)
    # In mixed precision another one wraps it, which scales the loss.
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    rate: Any = getattr(optimizer, "learning_rate", None)
    with contextlib.suppress(TypeError, ValueError):
        rate = float(rate)
    # Of a schedule Keras gives the rate at this step.
    schedule = getattr(optimizer, "_learning_rate", None)
    is_schedule = isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule)
    if isinstance(rate, float) and is_schedule:
        rate = f"{type(schedule).__name__} from {units.significant(rate)}"
    compiled = {
        "optimizer": type(optimizer).__name__,
        "learning rate": rate if isinstance(rate, float | str) else "a schedule",
    }
    loss = getattr(model, "loss", None)
    # Each output may have a loss of its own.
    if isinstance(loss, str) or callable(loss):
        with contextlib.suppress(TypeError, ValueError):
            loss = keras.losses.get(loss)
        name = getattr(loss, "__name__", type(loss).__name__)
        compiled["loss"] = _CAPITAL.sub("_", name).lower()
    return compiled


def in_learning(
    measured: Measurement, side: str, baseline: str
) -> Iterator[Difference]:
    """Yield differences in how two sides learn: as compiled, and in first losses."""
    mine, theirs = (_compiled(measured, name) for name in (side, baseline))
    for name in sorted(mine.keys() & theirs.keys()):
        if mine[name] != theirs[name]:
            values = mine[name], theirs[name]
            after, before = (
                units.significant(value) if isinstance(value, float) else str(value)
                for value in values
            )
            yield Difference(f"its {name} is {after} instead of {before}")
    new, base = first_losses(measured, side, baseline)
    finite = [all(map(math.isfinite, values)) for values in (new, base)]
    if len(new) > 1 and (_apart(new, base) if all(finite) else any(finite)):
        after, before = map(_mean, (new, base))
        yield Difference(f"its first losses are {after} instead of {before}")


def _mean(losses: list[float]) -> str:
    mean = statistics.fmean(losses)
    return units.significant(mean) if math.isfinite(mean) else "no numbers"


def first_losses(
    measured: Measurement, side: str, baseline: str
) -> tuple[list[float], list[float]]:
    """Return the first losses of both sides, over the rounds in which both have some.

    If one side notes means over several steps, the other's are means over as many.
    """
    new, base = list[float](), list[float]()
    mine, theirs = (
        {trial.round: losses(trial) for trial in measured.trials_of(name)}
        for name in (side, baseline)
    )
    for number in mine.keys() & theirs.keys():
        if mine[number] and theirs[number]:
            pair = mine[number], theirs[number]
            last = min(points[-1][0] for points in pair)
            # The larger one begins later, because its points span more steps.
            ends = [end for end, _ in max(pair)[:_FIRST] if end <= last]
            new += _means_between(ends, pair[0])
            base += _means_between(ends, pair[1])
    return new, base


def _means_between(ends: list[float], points: Points) -> list[float]:
    """The mean losses between these numbers of examples, from 0."""
    counts, means = zip(*points, strict=True)
    with np.errstate(all="ignore"):  # a loss may be infinite
        sums = np.cumsum(np.diff(counts, prepend=0) * means)
        between = np.diff(np.interp([0, *ends], (0, *counts), (0, *sums)))
        means_between: list[float] = (between / np.diff(ends, prepend=0)).tolist()
    return means_between


def alike(measured: Measurement, side: str, baseline: str) -> bool:
    """Whether the first losses are the same but for rounding, in each round."""
    new, base = first_losses(measured, side, baseline)
    return bool(new) and all(
        math.isclose(mine, theirs, rel_tol=_ROUNDING, abs_tol=_ROUNDING**2)
        for mine, theirs in zip(new, base, strict=True)
    )


def _apart(new: list[float], base: list[float]) -> bool:
    apart = abs(statistics.fmean(new) - statistics.fmean(base))
    # Rounds may repeat the same batches, so they add no independent losses.
    count = min(len(new), _FIRST)
    error = math.hypot(*map(statistics.stdev, (new, base))) / math.sqrt(count)
    return apart > _ERRORS * error and apart > _SHARE * abs(statistics.fmean(base))


def _compiled(measured: Measurement, side: str) -> dict[str, Any]:
    trials = (t for t in measured.trials_of(side) if COMPILED in t.notes)
    return next((trial.notes[COMPILED] for trial in trials), {})


def time_to_loss(finding: Finding, loss: float) -> "DataFrame":
    """Say how soon each side of a race reaches a loss: a table with a row for each.

    A trial has reached it once no later loss is higher; if one of a side never does,
    its cells are empty. The first step does not count. It is the training loss, so give
    data that do not repeat: otherwise the examples are not new. With fewer than three
    rounds, or seeds, nothing is compared.

    Args:
        finding: The finding of a race.
        loss: The loss to reach, which the training must be able to reach.

    Raises:
        BadParameterError: It is not a race, or the loss is not a number.
        MissingPartError: pandas is not installed.
    """
    # Of functions that are still to be written, race() returns no finding.
    sides = finding.parameters.get(SIDES) if isinstance(finding, Finding) else None
    if not isinstance(sides, list | tuple) or len(sides) < 2:
        raise BadParameterError(
            "time_to_loss() takes the finding of a race, such as "
            "`time_to_loss(perfkit.race(make_a, make_b), 0.5)`."
        )
    if not isinstance(loss, int | float | np.number) or not math.isfinite(loss):
        raise BadParameterError(f"loss is {loss!r}; give a number, such as 0.5.")
    measured, rows = measurement(finding), list[dict[str, Any]]()
    first, *_ = names = [*map(str, sides)]
    runs = {name: _runs_to(loss, measured, name) for name in names}
    times = f"times as fast as {first}"
    for name, mine in runs.items():
        row: dict[str, Any] = {"side": name}
        if mine:
            row["examples"] = round(
                statistics.median(r.examples for r in mine.values())
            )
            row["seconds"] = statistics.median(run.seconds for run in mine.values())
        if name != first and (compared := _compare(measured, runs, name, first)):
            row[times] = f"{compared.interval}, {compared.judgement}"
        rows.append(row)
    return frame(rows, ("side", "examples", "seconds", times))


def examples_to(loss: float, points: Points) -> float | None:
    """Examples until no later loss is above this one; None where that never comes."""
    # A loss that is no number is above any.
    above = [at for at, (_, mean) in enumerate(points) if not mean <= loss]
    last = max(above, default=-1)
    if last + 1 == len(points):
        return None
    if last < 0:
        return points[0][0]
    # A mean is that of the middle of its stretch.
    ends = [0.0, *(end for end, _ in points)][last : last + 3]
    before, after = (sum(stretch) / 2 for stretch in itertools.pairwise(ends))
    high, low = points[last][1], points[last + 1][1]
    share = (high - loss) / (high - low) if math.isfinite(high) else 1.0
    return before + (after - before) * share


class _Run(NamedTuple):
    """A trial that got there; its first loss tells its seed."""

    seed: str
    examples: float
    seconds: float


def _runs_to(loss: float, measured: Measurement, side: str) -> dict[int, _Run]:
    """The trials of a side by their rounds; none if one of them did not get there."""
    runs = dict[int, _Run]()
    for number, (trial, steady) in measured.by_round(side).items():
        points = losses(trial)
        examples = examples_to(loss, points)
        if examples is None:
            return {}
        runs[number] = _Run(f"{points[0][1]:.4g}", examples, examples / steady.rate)
    return runs


def _compare(
    measured: Measurement, runs: dict[str, dict[int, _Run]], side: str, first: str
) -> Comparison | None:
    """Compare the times of two sides; None over too few rounds."""
    mine, theirs = runs[side], runs[first]
    # Trials that begin with the same loss had the same seed, and count as one.
    ratios = {
        theirs[number].seed: theirs[number].seconds / mine[number].seconds
        for number in mine.keys() & theirs.keys()
    }
    if len(ratios) < LEAST_ROUNDS:
        return None
    logs, ones = np.log(list(ratios.values())), np.ones(len(ratios))
    rounds = Rounds(side, first, logs, within=0 * ones, turns=ones)
    return comparison(rounds, Spread.from_notes(measured.notes), measured.noise_floor)
