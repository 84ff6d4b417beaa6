"""The sides of a race: a training each, and what it is trained with."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from perfkit import units
from perfkit.diagnosis.change import Change
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.look import contained, look
from perfkit.diagnosis.maker import contain
from perfkit.experiments.shared.loops import Told
from perfkit.measure.host import Place
from perfkit.measure.tick import Note, Yielded
from perfkit.measure.trial import LOSSES
from perfkit.race.commits import Moved

# Notes of a trial: how its model was compiled, and which modules of a commit's trial
# came from the working tree all the same.
COMPILED, LEFT = "compiled", "from the working tree"
# Every one of the first steps notes its loss, later ones ever more seldom.
_EACH, _SELDOMER, _MOST = 5, 1.3, 64


@dataclass(frozen=True, kw_only=True)
class Side:
    """One training of a race.

    Attributes:
        name: In charts and in files; no path.
        maker: Makes the training, in each trial's process.
        changes: What it has that the first side has not, in a sentence.
        place: Where it runs.
        moved: Of a commit: where its code lies.
        retuned: Whether it is known to learn otherwise, or in steps of another size.
    """

    name: str
    maker: Callable[[], Any]
    changes: str = ""
    place: Place = field(default_factory=Place)
    moved: Moved = field(default_factory=Moved)
    retuned: bool = False


@dataclass(frozen=True)
class InPlace:
    """What a process of its own does with a side, in the place of that."""

    side: Side

    @property
    def place(self) -> Place:
        """Where it runs."""
        return self.side.place


@dataclass(frozen=True)
class First(InPlace):
    """The first look at a side's training."""

    def __call__(self) -> Iterator[Yielded]:
        """Note what it is, as a diagnosis does."""
        self.side.moved.move()
        return look(self.side.maker)


@dataclass(frozen=True)
class Work(InPlace):
    """A trial of a side, with some more changed in it.

    Attributes:
        facts: Of its training as it is.
        changes: What is changed in it, to learn where its time goes.
    """

    facts: Facts
    changes: tuple[Change, ...] = ()

    def __call__(self) -> Iterator[Told]:
        """Train, and note how the loss goes down."""
        self.side.moved.move()
        contain(self.side.maker)
        learning = Learning(self.side, self.facts.batch)
        ticks = contained(learning, self.facts, self.changes)
        with contextlib.closing(ticks):
            for tick in ticks:
                yield tick
                yield from learning.news()


class Learning:
    """Makes a training, and notes how it learns."""

    def __init__(self, side: Side, batch: int = 1) -> None:
        self._side, self._batch = side, batch
        self._news: dict[str, Any] = {}
        self._losses: list[tuple[int, float]] = []
        # Steps of earlier epochs, of this one, and of this one at the last noted loss;
        # the sum of this epoch's losses by then.
        self._before = self._step = self._noted = 0
        self._sum, self._next = 0.0, 1.0

    def __call__(self) -> Any:
        """Make the training, with one more callback."""
        before = set(sys.modules)
        made = self._side.maker()
        if left := self._side.moved.left(set(sys.modules) - before):
            self._news[LEFT] = left
        if not isinstance(made, tuple) or len(made) not in (2, 3):
            return made
        model, data, *rest = made
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
                self._news[COMPILED] = _compiled(callback.model)

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
    several = isinstance(callbacks, list | tuple)
    listed = callbacks if several else [callbacks] if callbacks else []
    return [*listed, callback]


def _compiled(model: Any) -> dict[str, Any]:
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
