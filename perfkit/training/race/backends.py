"""Races across versions and backends of Keras: 2 or 3, TensorFlow, JAX or PyTorch.

Nothing in a side is changed but its first weights, and all sides are counted by the
same callbacks of Keras. The baseline's first look writes its weights and a batch of its
data into a file. Every other side begins with those, so its first losses are the same
but for rounding where it does the same job.
"""

import contextlib
import functools
import math
import os
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.engine.launcher import read_early
from perfkit.engine.measurement import Measurement
from perfkit.engine.trial import Note, Yielded
from perfkit.findings.report import Fold
from perfkit.machine.environment import BACKENDS
from perfkit.questions.base import NOT_ASKED
from perfkit.questions.shared.loops import Told
from perfkit.training.diagnose import failure
from perfkit.training.diagnose.epochs import EPOCH_END, Epochs
from perfkit.training.diagnose.facts import (
    Facts,
    epochs_for,
    facts_of,
    facts_of_loop,
    some_epochs,
)
from perfkit.training.diagnose.look import FACTS, run_for_a_moment
from perfkit.training.diagnose.loop import Looping, fitted
from perfkit.training.diagnose.maker import contain
from perfkit.training.diagnose.tracing import Tracing
from perfkit.training.diagnose.training import Training, first_batch, leaves, map_leaves
from perfkit.training.race.learning import FIRST_STEP, Difference, Learning
from perfkit.training.race.question import BRIEF_ROUNDS, Race, fold
from perfkit.training.race.sides import Side, Work

# A note of a trial: the most bytes that its process has held, shared ones too.
MEMORY = "memory"


@failure.as_notes
def look_at(side: Side, folder: str) -> Iterator[Yielded]:
    """Look at a side's training, whatever Keras it is of, and note its first losses.

    The start that all sides share lies in ``folder``.
    """
    contain(side.maker, folder)
    began, loaded = time.perf_counter(), read_early(os.environ)
    looping, losses = Looping(Epochs(batch=1)), dict[str, Any]()

    def prepare(training: Training) -> None:
        losses.update(first_losses(training, folder))

    with contextlib.closing(fitted(side.maker, looping, prepare)) as running:
        run_facts = run_for_a_moment(running, Tracing(), began, loaded)
        run_facts["start"] = losses
        if looping.fitting:
            facts = facts_of(looping.fitting, **run_facts)
        else:
            some_epochs(running, looping)
            facts = facts_of_loop(looping, **run_facts)
        yield Note(FACTS, asdict(facts))


def train(side: Side, facts: Facts, folder: str) -> Generator[Told]:
    """Train from the shared start; note the losses, and how much memory that takes."""
    contain(side.maker, folder)
    learning = Learning(side.maker, facts.batch)
    looping = Looping(epochs_for(facts), max_epochs=facts.epochs)
    prepare = functools.partial(set_weights, folder=folder)
    # In kilobytes, but for macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    with contextlib.closing(fitted(learning, looping, prepare)) as ticks:
        for number, tick in enumerate(ticks, 1):
            yield tick
            yield from learning.news()
            # After the first, second, fourth, ... tick.
            if number & (number - 1) == 0:
                largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                yield Note(MEMORY, unit * largest)


@dataclass(frozen=True, kw_only=True)
class KerasRace(Race):
    """Is a training faster with another version of Keras, or on another backend?

    Attributes:
        backends: What each side trains on, by its name.
        folder: Where the start that all sides share lies.
    """

    backends: Mapping[str, str] = field(default_factory=dict, metadata=NOT_ASKED)
    folder: str = field(default="", metadata=NOT_ASKED)
    rounds: int = field(default=BRIEF_ROUNDS, metadata=NOT_ASKED)

    def look(self, side: Side) -> Work:
        """Make the first look at a side, which notes its facts and first losses."""
        return Work(side, functools.partial(look_at, folder=self.folder))

    def work(self, side: Side) -> Work:
        """Make a trial of a side."""
        facts = self.facts.get(side.name, Facts())
        return Work(side, functools.partial(train, facts=facts, folder=self.folder))

    def differences(
        self, side: Side, measured: Measurement | None
    ) -> tuple[Difference, ...]:
        """Return how a side's work differs from the baseline's.

        The same losses from the same weights say more than the names of layers, which
        differ from version to version.
        """
        new, base = (self.facts.get(name) for name in (side.name, self.baseline))
        # A loop of the user's own hands over no model.
        if not (new and base and new.start and base.start):
            return super().differences(side, measured)
        if reason := compare_starts(new.start, base.start):
            known = super().differences(side, measured=None)
            if any(difference.other_work for difference in known):
                return known
            return (*known, Difference(reason, other_work=True))
        facts = {**self.facts, side.name: replace(new, layers=base.layers)}
        return super(KerasRace, replace(self, facts=facts)).differences(side, measured)

    def _same_job(self, measured: Measurement) -> Iterator[str]:
        base = self.facts[self.baseline].start
        for side in self.sides[1:]:
            new = self.facts[side.name].start
            if new and base and not compare_starts(new, base):
                # Where layers draw random numbers, later losses cannot be the same.
                when = "before any step"
                if not (new["random"] or base["random"]):
                    when += f" and in {STEPS} steps"
                yield f"{side.name}: from the same weights its loss is the same {when}."
        yield from super()._same_job(measured)

    def _folds(self, measured: Measurement) -> tuple[Fold, ...]:
        # What the sides take besides their steps comes first.
        names = [side.name for side in self.sides]
        columns = [self._column(name, measured) for name in names]
        rows = ((label, *(c[label] for c in columns)) for label in columns[0])
        filled = tuple(row for row in rows if any(row[1:]))
        title = "Starting, ends of epochs and memory"
        beside = fold(title, ("beside the rate", *names), filled)
        return (*beside, *super()._folds(measured))

    def _column(self, name: str, measured: Measurement) -> dict[str, str]:
        trials = measured.trials_of(name)
        first_s = [t.notes[FIRST_STEP] for t in trials if FIRST_STEP in t.notes]
        ends_s = [s for trial in trials for s in trial.pauses.get(EPOCH_END, ())]
        sizes = [trial.notes[MEMORY] for trial in trials if MEMORY in trial.notes]
        backend = self.backends.get(name, "")
        return {
            "trains on": BACKENDS.get(backend, backend),
            "until the first step is done": _median(first_s, units.seconds),
            "end of an epoch": _median(ends_s, units.seconds),
            "memory, at most": _median(sizes, units.size),
        }


def _median(values: list[float], write: Callable[[float], str]) -> str:
    """Write the median of what trials noted; "" where none did."""
    return write(statistics.median(values)) if values else ""


# The start that all sides share, and their first losses.

Array = NDArray[Any]
# How many steps are made on the one batch.
STEPS = 3
# The same loss but for rounding, as a share of it: in single and in half precision.
# Steps of training make small differences larger.
_ROUNDING, _HALF_ROUNDING, _GROWTH = 1e-3, 2e-2, 10
_FILE, _WEIGHT, _PART = "start.npz", "weight", "part"
# Keras calls the layers that draw random numbers so, and what makes another draw some.
_RANDOM = re.compile("Dropout|Noise|Random")


def set_weights(training: Training, folder: str) -> None:
    """Give a model the weights of the shared start, where there are some that fit."""
    if not (path := Path(folder, _FILE)).is_file():
        return
    weights, _ = _read(path)
    _build(training)
    if _shapes(training.model.get_weights()) == _shapes(weights):
        training.model.set_weights(weights)


def first_losses(training: Training, folder: str) -> dict[str, Any]:
    """Train a few steps from the shared start; the first side to come makes it.

    The data may lose a batch.

    Returns:
        ``losses``: one before any step, then those of ``STEPS`` steps; ``random``:
        whether layers draw random numbers; ``half``: whether they compute in half
        precision. Or ``problem``: in words why there are no such losses.
    """
    try:
        return _train_from_start(training, Path(folder, _FILE))
    except Exception as error:
        # Model and data are the user's own, and may raise anything.
        return {"problem": f"from the same weights it raised {failure.in_short(error)}"}


def _train_from_start(training: Training, path: Path) -> dict[str, Any]:
    model, batch = training.model, first_batch(training)
    _build(training, batch)
    parts = [_to_array(part) for part in leaves(batch) if part is not None]
    weights = model.get_weights()
    if path.is_file():
        shared_weights, shared_parts = _read(path)
        if difference := _difference(weights, shared_weights):
            return {"problem": f"of weights it has {difference}"}
        # A batch of another size is said elsewhere.
        examples = ([np.atleast_1d(a)[0] for a in p] for p in (parts, shared_parts))
        if difference := _difference(*examples):
            return {"problem": f"of an example it has {difference}"}
        model.set_weights(shared_weights)
        parts = shared_parts
    else:
        arrays = {f"{_WEIGHT}{at}": weight for at, weight in enumerate(weights)}
        arrays |= {f"{_PART}{at}": part for at, part in enumerate(parts)}
        np.savez(path, **arrays)
    remaining = iter(parts)
    batch = map_leaves(lambda leaf: leaf if leaf is None else next(remaining), batch)
    parts_of_step = (*(batch if isinstance(batch, tuple) else (batch,)), None, None)
    x, y, sample_weight, *_ = parts_of_step
    losses = []
    for run in (model.test_on_batch, *STEPS * (model.train_on_batch,)):
        model.reset_metrics()
        losses.append(float(run(x, y, sample_weight, return_dict=True)["loss"]))
    layers = list(model._flatten_layers())
    policies = [str(getattr(layer, "compute_dtype", "")) for layer in layers]
    return {
        "losses": losses,
        "random": any(map(_draws, layers)),
        "half": any(policy.endswith("float16") for policy in policies),
    }


def _build(training: Training, batch: Any = None) -> None:
    """Make the weights of a model that makes them when it is first called."""
    if training.model.built:
        return
    batch = first_batch(training) if batch is None else batch
    training.model(batch[0] if isinstance(batch, tuple) else batch)


def _draws(layer: Any) -> bool:
    """Whether a layer draws random numbers when it is trained."""
    rates = (getattr(layer, name, 0) for name in ("dropout", "recurrent_dropout"))
    return bool(_RANDOM.search(type(layer).__name__)) or any(
        isinstance(rate, int | float) and rate > 0 for rate in rates
    )


def _to_array(part: Any) -> Array:
    array = np.asarray(part)
    if array.dtype == object:
        raise TypeError("a batch holds more than numbers")
    return array


def _read(path: Path) -> tuple[list[Array], list[Array]]:
    """Return the weights and the parts of the batch."""
    with np.load(path) as arrays:
        names = arrays.files
        weights = [arrays[name] for name in names if name.startswith(_WEIGHT)]
        return weights, [arrays[name] for name in names if name.startswith(_PART)]


def _shapes(arrays: Sequence[Array]) -> list[tuple[int, ...]]:
    return [array.shape for array in arrays]


def _difference(mine: Sequence[Array], shared: Sequence[Array]) -> str:
    """Say how the shapes of these differ; "" where they do not."""
    if len(mine) != len(shared):
        return f"{len(mine)} arrays instead of {len(shared)}"
    pairs = zip(_shapes(mine), _shapes(shared), strict=True)
    different = next(((a, b) for a, b in pairs if a != b), None)
    return f"{different[0]} instead of {different[1]}" if different else ""


def compare_starts(new: dict[str, Any], base: dict[str, Any]) -> str:
    """Say how a side's first losses differ from the baseline's beyond rounding.

    Or say why nothing could be compared; "" where they are the same.
    """
    if problem := new.get("problem"):
        return str(problem)
    if problem := base.get("problem"):
        return f"the baseline has no first losses to compare: {problem}"
    is_half, is_random = (new[name] or base[name] for name in ("half", "random"))
    first = _HALF_ROUNDING if is_half else _ROUNDING
    # Where layers draw random numbers, only the loss before any step is compared.
    tolerances = [first, *([] if is_random else STEPS * [first * _GROWTH])]
    pairs = zip(new["losses"], base["losses"], tolerances, strict=False)
    for step, (mine, theirs, tolerance) in enumerate(pairs):
        if not math.isclose(mine, theirs, rel_tol=tolerance, abs_tol=1e-9):
            when = f"in step {step}" if step else "before any step"
            losses = " instead of ".join(
                units.significant(loss) if math.isfinite(loss) else "no number"
                for loss in (mine, theirs)
            )
            return f"from the same weights its loss on one batch is {losses} {when}"
    return ""
