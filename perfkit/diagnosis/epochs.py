"""The user's own ``fit``, cut into ticks, with what the end of an epoch costs.

A trial lasts seconds and an epoch may last hours. So epochs are ended early where they
are long, by the same means as ``EarlyStopping`` has, and what their ends cost
(validation, callbacks, a new iterator, a shuffle buffer to fill) is told as a pause
that comes again once in a real epoch.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfkit.errors import BadParameterError
from perfkit.measure.tick import READY, TICK_S, Pause, Tick
from perfkit.workloads.execution.inside_fit import Turnstile
from perfkit.workloads.execution.loops import wait

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from perfkit.diagnosis.training import Training
    from perfkit.workloads.execution.inside_fit import Told

EPOCH_END = "epoch end"
_ENDLESS = 10**9


@dataclass(frozen=True)
class Epochs:
    """How long the epochs of a training are, and how long those of a trial.

    Attributes:
        batch: Examples of a step.
        steps: Of a real epoch; None where it has no end that anybody knows.
        trial_steps: After which a trial ends an epoch; None to leave it to the data.
        whole: Whether ticks hold whole epochs, ends included: they are so short.
    """

    batch: int
    steps: int | None = None
    trial_steps: int | None = None
    whole: bool = False


def fitted(making: Callable[[], Training], epochs: Epochs) -> Generator[Told]:
    """Train with ``fit`` without an end.

    Args:
        making: Makes the training, in the thread that trains it: Keras keeps its
            settings for each thread apart.
        epochs: Of this training.

    Yields:
        ``READY`` once the first epoch is over (the first step, where epochs have no
        end), then ticks, and a pause at each end of an epoch.
    """
    turnstile = Turnstile()

    def work() -> None:
        training = making()
        counter = _Counter(turnstile, epochs)
        first, last = counter.callbacks()
        own = list(training.arguments.get("callbacks") or ())
        while True:
            training.fit([first, *own, last], epochs=_ENDLESS)
            if counter.used_up():
                return

    yield from turnstile.heard(work)


class _Counter:
    """Counts the steps of a running fit and hands them over."""

    def __init__(self, turnstile: Turnstile, epochs: Epochs) -> None:
        self._turnstile, self._epochs = turnstile, epochs
        self._limit = epochs.trial_steps or epochs.steps
        self._reached = self._steps = self._all = 0
        self._ready = self._at_end = self._ever = False
        self._began = time.perf_counter()

    def callbacks(self) -> tuple[Any, Any]:
        """The one that comes first, and the one that comes last."""
        from keras.callbacks import LambdaCallback

        first: Any = LambdaCallback(
            on_epoch_begin=lambda epoch, logs: self._begin_epoch(),
            on_epoch_end=lambda epoch, logs: _go_on(first),
        )
        last: Any = LambdaCallback(
            on_train_batch_end=lambda batch, logs: self._reach(batch + 1, last),
            on_epoch_end=lambda epoch, logs: self._end_epoch(last),
        )
        return first, last

    def used_up(self) -> bool:
        """Whether the last fit found no more data; one that never did is refused."""
        if self._ever and not self._all:
            return True
        if not self._ever:
            raise BadParameterError(
                "The training made no step: its data are empty, or used up."
            )
        self._all = 0
        self._end_epoch(None)
        return False

    def _begin_epoch(self) -> None:
        self._reached = 0

    def _reach(self, step: int, callback: Any) -> None:
        new, self._reached = step - self._reached, step
        self._all, self._ever = self._all + new, True
        self._count(new)
        if self._limit and step >= self._limit:
            if not self._epochs.whole:
                self._tell_steps()
            if self._epochs.trial_steps:
                callback.model.stop_training = True

    def _count(self, new: int) -> None:
        if not self._ready and (self._at_end or not self._epochs.steps):
            self._ready, self._at_end = True, False
            self._tell(READY)
        elif self._ready and self._at_end and not self._epochs.whole:
            self._at_end = False
            self._tell(self._end_of_epoch(new))
        elif self._ready:
            self._steps += new
            long = time.perf_counter() - self._began >= TICK_S
            # The first step of an epoch ends what the end of the last one took.
            if long and (self._at_end or not self._epochs.whole):
                self._tell_steps()
            self._at_end = False

    def _end_of_epoch(self, new: int) -> Pause:
        if not self._epochs.steps:
            return Pause(EPOCH_END)
        batch = self._epochs.batch
        return Pause(EPOCH_END, every=self._epochs.steps * batch, within=new * batch)

    def _end_epoch(self, callback: Any) -> None:
        self._at_end = True
        if callback is not None:
            # Whoever stops by the loss would end the trial: time does that here.
            _go_on(callback)

    def _tell_steps(self) -> None:
        if self._steps:
            self._tell(Tick(self._steps * self._epochs.batch))

    def _tell(self, what: Told) -> None:
        wait()
        self._turnstile.tell(what)
        self._steps, self._began = 0, time.perf_counter()


def _go_on(callback: Any) -> None:
    callback.model.stop_training = False
