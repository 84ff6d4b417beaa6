"""Races across versions and backends of Keras: 2 or 3, TensorFlow, JAX or PyTorch.

Nothing in a side is changed but its first weights, and all sides are counted by the
same callbacks of Keras.
"""

import contextlib
import functools
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from perfkit import units
from perfkit.engine.launcher import read_early
from perfkit.engine.measurement import Measurement
from perfkit.engine.tick import Note, Yielded
from perfkit.findings.report import Fold
from perfkit.machine.environment import BACKENDS
from perfkit.questions.parameters import NOT_ASKED
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
from perfkit.training.diagnose.training import Training
from perfkit.training.race import start
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
        losses.update(start.first_losses(training, folder))

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
    prepare = functools.partial(start.set_weights, folder=folder)
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
        loaded_s: Seconds that importing its libraries took, by its name.
        folder: Where the start that all sides share lies.
    """

    backends: Mapping[str, str] = field(default_factory=dict, metadata=NOT_ASKED)
    loaded_s: Mapping[str, float | None] = field(
        default_factory=dict, metadata=NOT_ASKED
    )
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
        if reason := start.compare(new.start, base.start):
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
            if new and base and not start.compare(new, base):
                yield f"{side.name}: {start.in_words(new, base)}"
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
        loaded_s = self.loaded_s.get(name)
        first_s = [t.notes[FIRST_STEP] for t in trials if FIRST_STEP in t.notes]
        ends_s = [s for trial in trials for s in trial.pauses.get(EPOCH_END, ())]
        sizes = [trial.notes[MEMORY] for trial in trials if MEMORY in trial.notes]
        backend = self.backends.get(name, "")
        return {
            "trains on": BACKENDS.get(backend, backend),
            "importing its libraries": units.seconds(loaded_s) if loaded_s else "",
            "until the first step is done": _median(first_s, units.seconds),
            "end of an epoch": _median(ends_s, units.seconds),
            "memory, at most": _median(sizes, units.size),
        }


def _median(values: list[float], write: Callable[[float], str]) -> str:
    """Write the median of what trials noted; "" where none did."""
    return write(statistics.median(values)) if values else ""
