"""The user's own ``fit``, cut into ticks, with what the end of an epoch costs.

A trial lasts seconds and an epoch may last hours. So epochs are ended early where they
are long, by the same means as ``EarlyStopping`` has, and what their ends cost
(validation, callbacks, a new iterator, a shuffle buffer to fill) is told as a pause
that comes again once in a real epoch. A validation is a pause of its own.
"""

import _thread
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from perfkit.engine.trial import READY, TICK_S, Note, Pause, Tick
from perfkit.errors import BadParameterError
from perfkit.questions.shared.loops import Told, Turnstile
from perfkit.training.diagnose.training import (
    Training,
    backend_name,
    epochs_between,
    is_keras_2,
    load_keras,
    prepare_callbacks,
    updates_once,
    wait,
)

# What goes through a ``PyDataset`` for Keras, and is within an epoch.
_WITHIN = set[Any]()


def tell_datasets() -> None:
    """Let a ``PyDataset`` end an epoch that was broken off before it begins the next.

    Keras breaks an epoch off for good where a training is stopped, and refuses to begin
    another then. What the end does belongs to the end of an epoch, as in a real one.
    """
    if is_keras_2():
        return
    # Keras before 3.7 takes an epoch as it comes, and has no such method.
    with contextlib.suppress(ImportError, AttributeError):
        from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter

        begin, end = PyDatasetAdapter.on_epoch_begin, PyDatasetAdapter.on_epoch_end

        def end_then_begin(adapter: Any) -> None:
            if getattr(adapter, "_within_epoch", False):
                adapter.on_epoch_end()
            _WITHIN.add(adapter)
            begin(adapter)

        def noted_end(adapter: Any) -> None:
            _WITHIN.discard(adapter)
            end(adapter)

        PyDatasetAdapter.on_epoch_begin = end_then_begin
        PyDatasetAdapter.on_epoch_end = noted_end


def stand_in() -> None:
    """Let this process's other threads ask for signal handlers, which are not set.

    A trial makes the training in a thread of its own, and Python refuses handlers
    there. A trial is ended by a signal that no handler hears.
    """
    real = signal.signal

    def set_handler(number: int, handler: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            return real(number, handler)
        return signal.getsignal(number)

    signal.signal = set_handler  # type: ignore[assignment]


def end_passes_aside() -> None:
    """Let each iterator of ``tf.data`` end in a thread of its own.

    It waits for its autotuner, which may sleep for as long as the pass took. Where
    trials take turns a pass takes several times as long, and so would that wait.
    """
    if tensorflow := sys.modules.get("tensorflow"):
        tensorflow.data.Iterator.__del__ = _end_aside


def _end_aside(iterator: Any) -> None:
    resource = [vars(iterator).pop("_iterator_resource", None)]
    # Python starts no thread any more while it ends.
    with contextlib.suppress(RuntimeError):
        _thread.start_new_thread(resource.clear, ())


VALIDATION = "validation"
# What comes before the first batch of a validation that is shortened.
START = "validation start"
# The note of a trial whose validations were shortened: the share of them that was run.
SHORTENED = "validation shortened to"
_MOMENT_S = 0.35


class Validating:
    """Watches the validations of a trial; of how many steps, nobody may know.

    Keras 2 ends none that is asked to, so it ``shortens`` none.
    """

    def __init__(self, steps: int | None, *, shortens: bool = True) -> None:
        self._steps, self._shortens = steps, shortens
        self._limit: int | None = None
        self._validations, self._began = 0, 0.0
        # Batches of the first execution, and whether its time was told by itself.
        self._first, self.apart = 0, False

    def begin(self) -> None:
        """Begin a validation."""
        self._began, self._first, self.apart = 0.0, 0, False

    def reach(self, count: int, model: Any) -> bool:
        """Count batches, and end the validation where it took a moment.

        True where what came by now is to be told by itself: then it is ``apart``.
        """
        batches = min(count, self._steps or count)
        first = not self._began
        if first:
            # The first batch of all traces what the others run.
            self._began, self._first = time.perf_counter(), batches
        elif self._shortens and self._limit is None and self._validations == 0:
            long = time.perf_counter() - self._began > _MOMENT_S
            if long and batches != self._steps:
                self._limit = batches
        if self._limit is not None and batches >= self._limit:
            model.stop_evaluating = True
        return first and self._steps is not None and batches < (self._limit or 0)

    def end(self, examples: float) -> tuple[Note | Pause, ...]:
        """End it, and give what a trial is to tell, once in so many ``examples``."""
        self._validations += 1
        first = self._validations == 1
        if self._limit is None:
            return (Pause(VALIDATION, every=examples),)
        if self._steps is None:
            # Nobody knows what all of it costs.
            return (Pause(VALIDATION),)
        share = self._limit / self._steps
        notes = (Note(SHORTENED, share),) if first else ()
        if self.apart:
            share = (self._limit - self._first) / (self._steps - self._first)
        return *notes, Pause(VALIDATION, every=examples * share)


EPOCH_END = "epoch end"
# Each epoch of a trial is so many times as long as the one before.
_LONGER = 2
_ENDLESS = 10**9


@dataclass(frozen=True)
class Epochs:
    """How long the epochs of a training are, and how long those of a trial.

    Attributes:
        batch: Examples of a step.
        steps: Of a real epoch; None where it has no end that anybody knows.
        examples: Of a real epoch, whose last step may hold fewer; 0 as ``steps``.
        trial_steps: After which a trial ends an epoch; None to leave it to the data.
        has_epoch_ticks: Whether ticks hold whole epochs with their ends, as short ones.
        validation: Steps of a validation; None where nobody knows.
        validated: Epochs from one validation to the next; 0 where there is none.
    """

    batch: int
    steps: int | None = None
    examples: int = 0
    trial_steps: int | None = None
    has_epoch_ticks: bool = False
    validation: int | None = None
    validated: float = 0


@dataclass
class Block:
    """A stretch of ``fit`` that may end and be followed by another.

    Attributes:
        training: With whatever is changed in it.
        epochs: Of this training.
        over: Asked after all that is told: whether the block is over.
        at_once: Whether it is ready after its first step, because it was warm before.
        state: Lets its model be run so, where other blocks train the same one by turns.
        callbacks: The user's callbacks, made fit for a trial.
        validating: Watches its validations; the same one in all blocks of a variant.
    """

    training: Training
    epochs: Epochs
    over: Callable[[], bool] = bool
    at_once: bool = False
    state: Any = None

    def __post_init__(self) -> None:
        callbacks = self.training.arguments["callbacks"]
        self.callbacks = prepare_callbacks(callbacks, self.training.epochs or 1)
        self.validating = Validating(self.epochs.validation, shortens=not is_keras_2())


def train(block: Block, turnstile: Turnstile) -> None:
    """Train with ``fit`` until the block is over, or the data are used up."""
    counter = _Counter(turnstile, block)
    first, last = counter.callbacks()
    # How seldom it comes is part of what each validation is told to cost.
    arguments = dict(block.training.arguments)
    arguments.pop("validation_freq", None)
    training = replace(block.training, arguments=arguments)
    try:
        with contextlib.suppress(_Over):
            while not counter.used_up():
                training.fit([first, *block.callbacks, last], epochs=_ENDLESS)
    finally:
        # Workers of a ``PyDataset`` would make batches while another trains.
        for adapter in list(_WITHIN):
            adapter.on_epoch_end()


class _Over(Exception):
    """Ends a ``fit`` whose block is over, or that has no more data."""


class _Counter:
    """Counts the steps of a running fit and hands them over."""

    def __init__(self, turnstile: Turnstile, block: Block) -> None:
        self._turnstile, self._block = turnstile, block
        # On JAX, asking a callback for its model copies all variables back into it.
        self._model = block.training.model
        epochs = block.epochs
        if epochs.validated:
            # As many as a change has left.
            epochs = replace(epochs, validated=epochs_between(block.training.arguments))
        self._epochs = epochs
        # Of the epoch that runs; None where it is left to the data.
        self._trial_steps = epochs.trial_steps
        # Of the last epoch that ended by itself, where nobody knew before.
        self._length = epochs.examples
        self._reached = self._examples = self._all = self._fits = 0
        self._ready = self._at_end = self._ever = False
        self._began = time.perf_counter()
        self._before = 0
        self._validating = block.validating
        self._apart = epochs.has_epoch_ticks and epochs.validated > 0

    def callbacks(self) -> tuple[Any, Any]:
        """The one that comes first, and the one that comes last."""
        first = to_callback(
            on_epoch_begin=lambda epoch, logs: self._begin_epoch(),
            on_epoch_end=lambda epoch, logs: self._steps_are_over(),
            on_test_begin=lambda logs: self._begin_validation(),
        )
        last = to_callback(
            on_train_batch_end=lambda batch, logs: self._reach(batch + 1),
            on_epoch_end=lambda epoch, logs: self._end_epoch(),
            on_test_batch_end=lambda batch, logs: self._reach_validation(batch + 1),
            on_test_end=lambda logs: self._end_validation(),
        )
        return first, last

    def used_up(self) -> bool:
        """Whether the last fit found no more data; False before the first."""
        if self._fits:
            self._refuse_none()
            if not self._all:
                return True
            self._close_epoch()
        self._fits, self._all = self._fits + 1, 0
        return False

    def _refuse_none(self) -> None:
        if not self._ever:
            raise BadParameterError(
                "The training made no step, because its data are empty or used up."
            )

    def _begin_epoch(self) -> None:
        self._reached = 0
        self._before = _updates(self._model) if self._counts_updates else 0
        if self._apart and self._ready and self._at_end:
            self._at_end = False
            self._tell(self._end_of_epoch(0))

    def _reach(self, step: int) -> None:
        step = self._steps_done(step)
        new, self._reached = self._upto(step) - self._upto(self._reached), step
        self._all, self._ever = self._all + new, True
        self._count(new)
        stop = 0 < (self._trial_steps or 0) <= step
        if self._model.stop_training != stop:
            # Whoever stops by the loss would end the trial: time does that here.
            self._model.stop_training = stop
        limit = self._trial_steps or self._epochs.steps
        if limit and step >= limit and not self._epochs.has_epoch_ticks:
            self._tell_steps()

    def _upto(self, step: int) -> int:
        """Examples of an epoch's first steps."""
        examples = step * self._epochs.batch
        return min(examples, self._epochs.examples or examples)

    @property
    def _counts_updates(self) -> bool:
        """Whether only the optimizer knows how many steps an execution held."""
        if self._epochs.steps or getattr(self._model, "steps_per_execution", 1) == 1:
            return False
        # JAX keeps the number on the device until the epoch ends.
        return backend_name() != "jax" and updates_once(self._model)

    def _steps_done(self, step: int) -> int:
        """The steps of this epoch: its last execution may hold fewer than it says."""
        if self._epochs.steps:
            return min(step, self._epochs.steps)
        if not self._counts_updates:
            return step
        return max(self._reached, _updates(self._model) - self._before)

    def _count(self, new: int) -> None:
        at_once = self._block.at_once or not self._epochs.steps
        if not self._ready and (self._at_end or at_once):
            self._ready, self._at_end = True, False
            self._tell(READY)
        elif self._ready and self._at_end and not self._epochs.has_epoch_ticks:
            self._at_end = False
            self._tell(self._end_of_epoch(new))
        elif self._ready:
            self._examples += new
            long = time.perf_counter() - self._began >= TICK_S
            # The first step of an epoch ends what the end of the last one took.
            if long and (self._at_end or not self._epochs.has_epoch_ticks):
                self._tell_steps()
            self._at_end = False

    def _end_of_epoch(self, new: int) -> Pause:
        return Pause(EPOCH_END, every=self._length, within=new if self._length else 0)

    def _steps_are_over(self) -> None:
        if self._ready and not self._at_end and not self._epochs.has_epoch_ticks:
            self._tell_steps()
        self._model.stop_training = False

    def _begin_validation(self) -> None:
        if self._apart:
            self._tell_steps()
        self._steps_are_over()
        self._validating.begin()

    def _reach_validation(self, count: int) -> None:
        if self._validating.reach(count, self._model) and self._ready:
            self._validating.apart = True
            self._tell(Pause(START, every=self._validated()))

    def _validated(self) -> float:
        """Examples trained on for each validation of the real training."""
        epoch = self._epochs.examples or self._upto(self._reached)
        return epoch * self._epochs.validated

    def _end_validation(self) -> None:
        for event in self._validating.end(self._validated()):
            if self._ready or isinstance(event, Note):
                self._tell(event)

    def _end_epoch(self) -> None:
        self._refuse_none()
        if not self._reached:
            raise _Over
        self._close_epoch()
        self._model.stop_training = False

    def _close_epoch(self) -> None:
        self._at_end = True
        if self._trial_steps:
            # A few ends tell what they cost; from then on the time is for steps.
            self._trial_steps *= _LONGER
        if not self._epochs.steps:
            self._length = self._upto(self._reached)

    def _tell_steps(self) -> None:
        if self._examples:
            self._tell(Tick(self._examples))

    def _tell(self, event: Told) -> None:
        wait()
        self._turnstile.tell(event)
        self._examples, self._began = 0, time.perf_counter()
        if self._block.over():
            raise _Over


def to_callback(**hooks: Callable[..., object]) -> Any:
    """Make a callback of functions that need no logs on the host."""
    callback = load_keras().callbacks.LambdaCallback(**hooks)
    # Keras 2 would wait for the device after each step to hand over numbers.
    callback._supports_tf_logs = True
    return callback


def _updates(model: Any) -> int:
    """How often the optimizer of a model has changed its weights."""
    # Under a strategy the variable is one for each device, and no number itself.
    return int(model.optimizer.iterations.numpy()) if model.optimizer else 0
