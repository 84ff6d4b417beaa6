"""The sides of a race: a training each, and what it is trained with."""

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from perfkit import units
from perfkit.diagnosis.change import Change
from perfkit.diagnosis.changes.model import enlarge
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.look import look
from perfkit.diagnosis.maker import contain
from perfkit.diagnosis.trial import contained
from perfkit.errors import BadParameterError
from perfkit.experiments.shared.loops import Told
from perfkit.experiments.shared.precision import use_policy
from perfkit.measure.host import Place
from perfkit.measure.tick import Note, Yielded
from perfkit.measure.trial import FIRST_STEP_S, LOSSES, NEW_EXAMPLES
from perfkit.race.commits import Moved

# Notes of a trial: seconds from its start until the training was made, how its model
# was compiled, and of a commit what came from the working tree all the same.
MADE_S, COMPILED, LEFT = "made_s", "compiled", "from the working tree"
# Losses are told of every one of the first steps, then ever more seldom.
_EACH, _SELDOMER, _MOST = 5, 1.3, 64


@dataclass(frozen=True, kw_only=True)
class Side:
    """One training of a race.

    Attributes:
        name: In charts and in files; no path.
        maker: Makes the training, in each trial's process.
        changes: What it has that the first side has not, in a sentence.
        place: Where it runs.
        batch: Examples of a step, in place of its own; 0 for its own.
        policy: The dtype policy of its layers, in place of its own; "" for its own.
        moved: Of a commit: where its code lies.
        retuned: Whether it is known to learn otherwise, or in steps of another size.
    """

    name: str
    maker: Callable[[], Any]
    changes: str = ""
    place: Place = field(default_factory=Place)
    batch: int = 0
    policy: str = ""
    moved: Moved = field(default_factory=Moved)
    retuned: bool = False

    @property
    def learns_otherwise(self) -> bool:
        """Whether it does, as was asked for."""
        return bool(self.batch or self.policy or self.retuned)

    def make_changes(self, facts: Facts) -> tuple[Change, ...]:
        """What is changed in it, by hand.

        Raises:
            BadParameterError: Its own code decides that.
        """
        if facts.loop and (self.batch or self.policy):
            raise BadParameterError(
                "--batch and --policy need fit: a loop of your own decides that "
                "itself. Change it in a copy, and race the two."
            )
        found = []
        if self.batch:
            times = self.batch / facts.batch
            enlarged = functools.partial(enlarge, times=times)
            found.append(_by_hand("batch", apply=enlarged, batches=times))
        if self.policy and self.policy != facts.policy:
            if facts.policy != "float32":
                raise BadParameterError(
                    f"The model has a policy of its own already ({facts.policy}): "
                    "change it in a copy, and race the two."
                )
            before = functools.partial(use_policy, self.policy)
            found.append(_by_hand("policy", before=before))
        return tuple(found)


def _by_hand(name: str, **does: Any) -> Change:
    return Change(name=name, cause=name, kind="opportunity", changes="", fix="", **does)


@dataclass(frozen=True)
class First:
    """The first look at a side's training, in a process of its own."""

    side: Side

    @property
    def place(self) -> Place:
        """Where it runs."""
        return self.side.place

    def __call__(self) -> Iterator[Yielded]:
        """Tell what it is, as a diagnosis does."""
        self.side.moved.move()
        return look(self.side.maker)


@dataclass(frozen=True)
class Work:
    """A trial of a side, with some more changed in it.

    Attributes:
        side: Whose.
        facts: Of its training as it is.
        changes: Besides what the side itself changes.
    """

    side: Side
    facts: Facts
    changes: tuple[Change, ...] = ()

    @property
    def place(self) -> Place:
        """Where it runs."""
        return self.side.place

    def __call__(self) -> Iterator[Told]:
        """Train, and tell besides how the loss goes down."""
        self.side.moved.move()
        contain(self.side.maker)
        learning = Learning(self.side, self.side.batch or self.facts.batch)
        changes = (*self.side.make_changes(self.facts), *self.changes)
        with contextlib.closing(contained(learning, self.facts, changes)) as running:
            for told in running:
                yield told
                yield from learning.news()


class Learning:
    """Makes a training, and notes when that was done and how it learns from then on."""

    def __init__(
        self,
        side: Side,
        batch: int = 1,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._side, self._batch = side, batch
        self._clock, self._began = clock, clock()
        self._news: dict[str, Any] = {}
        self._losses: list[tuple[int, float]] = []
        # Steps of earlier epochs and of this one; of this one at the last loss, and
        # the sum of its losses by then.
        self._before = self._step = self._told = 0
        self._sum, self._next = 0.0, 1.0

    def __call__(self) -> Any:
        """Make the training, with a callback more."""
        before = set(sys.modules)
        made = self._side.maker()
        if left := self._side.moved.left(set(sys.modules) - before):
            self._news[LEFT] = left
        self._news[MADE_S] = self._clock() - self._began
        if not isinstance(made, tuple) or len(made) not in (2, 3):
            return made
        model, data, *rest = made
        arguments = dict(rest[0]) if rest else {}
        arguments["callbacks"] = _with(arguments.get("callbacks"), self._callback())
        return model, data, arguments

    def news(self) -> Iterator[Note]:
        """What became known since the last time."""
        news, self._news = self._news, {}
        yield from (Note(name, value) for name, value in news.items())

    def _callback(self) -> Any:
        from keras.callbacks import LambdaCallback

        def begin(logs: Any) -> None:
            if COMPILED not in self._news and not self._losses:
                self._news[COMPILED] = _compiled(callback.model)

        callback = LambdaCallback(
            on_train_begin=begin,
            on_epoch_begin=lambda epoch, logs: self._begin_epoch(),
            on_train_batch_end=lambda batch, logs: self.reach(batch + 1, logs),
        )
        return callback

    def _begin_epoch(self) -> None:
        if self._step and not self._before:
            self._news[NEW_EXAMPLES] = self._step * self._batch
        self._before += self._step
        self._step = self._told = 0
        self._sum = 0.0

    def reach(self, step: int, logs: Any) -> None:
        """So many steps of this epoch are done; ``logs`` has their mean loss."""
        if not self._before and not self._step:
            self._news[FIRST_STEP_S] = self._clock() - self._began
        self._step = step
        done = self._before + step
        loss = (logs or {}).get("loss")
        if done < self._next or loss is None or len(self._losses) >= _MOST:
            return
        total = float(loss) * step
        between = (total - self._sum) / (step - self._told)
        self._losses.append((done * self._batch, between))
        self._told, self._sum = step, total
        self._next = done + max(1.0, (_SELDOMER - 1) * done * (done >= _EACH))
        self._news[LOSSES] = list(self._losses)


def _with(given: Any, callback: Any) -> Any:
    """Those callbacks and one more; a ``CallbackList`` stays one."""
    import keras

    if isinstance(given, keras.callbacks.CallbackList):
        given.callbacks.append(callback)
        return given
    listed = given if isinstance(given, list | tuple) else [given] if given else []
    return [*listed, callback]


def _compiled(model: Any) -> dict[str, Any]:
    """By what a model learns: words and numbers alone."""
    from keras.optimizers.schedules import LearningRateSchedule

    optimizer = model.optimizer
    rate: Any = getattr(optimizer, "learning_rate", None)
    with contextlib.suppress(TypeError, ValueError):
        rate = float(rate)
    # Of a schedule Keras gives the value of now.
    schedule = getattr(optimizer, "_learning_rate", None)
    if isinstance(rate, float) and isinstance(schedule, LearningRateSchedule):
        rate = f"{type(schedule).__name__} from {units.significant(rate)}"
    loss = getattr(model, "loss", None)
    return {
        "optimizer": type(optimizer).__name__,
        "learning rate": rate if isinstance(rate, float | str) else "a schedule",
        "loss": loss if isinstance(loss, str) else type(loss).__name__,
    }
