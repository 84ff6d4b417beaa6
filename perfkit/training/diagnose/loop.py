"""A loop of the user's own that runs in a trial: what data it is given, and how long.

The function that is diagnosed runs the loop itself, and ``perfkit.steps`` tells of each
step. A real loop ends, and may save what it has learnt; a trial must not come so far.
So the last epoch that a trial begins goes on, with the data anew, until the trial is
over. What its steps call besides is heard: functions that compute gradients or run a
model without a ``tf.function`` around them, and iterators, which many make for each.
"""

import functools
import itertools
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from perfkit.engine.trial import READY, TICK_S, Pause, Tick
from perfkit.errors import BadParameterError
from perfkit.questions.shared.loops import Told, Turnstile
from perfkit.training.account.places import outwards, repeated
from perfkit.training.diagnose import listening
from perfkit.training.diagnose.epochs import (
    EPOCH_END,
    Block,
    Epochs,
    end_passes_aside,
    stand_in,
    tell_datasets,
    train,
)
from perfkit.training.diagnose.training import Training, handed_over, kind_of, wait

# The data of the last epoch of a trial began anew, which no real epoch does.
ANEW = "data begin anew"
# What an iterator of Python or of TensorFlow raises at its end.
_AT_END = ("StopIteration", "OutOfRangeError")


class StepCounter:
    """Counts steps and hands them over as ticks.

    A trial is ready after its first epoch; where the length of epochs is not known, or
    there is but one, after its first step.
    """

    def __init__(self, turnstile: Turnstile, epochs: Epochs) -> None:
        self._turnstile, self._epochs = turnstile, epochs
        self._steps = 0
        self._ready = self._at_end = False
        self._next: Pause | None = None
        self._began = time.perf_counter()

    def step(self) -> None:
        """Count one more step that is done."""
        if not self._ready:
            if self._at_end or not self._epochs.steps:
                self._ready, self._next = True, None
                self._tell(READY)
        elif self._next is not None:
            pause, self._next = self._next, None
            self._tell(pause)
        else:
            self._steps += 1
            if time.perf_counter() - self._began >= TICK_S:
                self.tell_steps()

    def end_epoch(self) -> None:
        """Tell what was done; the next step ends what the epoch's end takes."""
        self.tell_steps()
        examples = (self._epochs.steps or 0) * self._epochs.batch
        within = self._epochs.batch if examples else 0
        self._at_end, self._next = True, Pause(EPOCH_END, examples, within)

    def begin_anew(self) -> None:
        """Leave out the time until the next step has been made."""
        self.tell_steps()
        self._next = Pause(ANEW)

    def set_up_anew(self) -> None:
        """Leave out all until a step of a training made anew is done."""
        self.begin_anew()
        self._ready, self._at_end = False, True

    def tell_steps(self) -> None:
        """End the tick if it holds any step."""
        if self._steps:
            self._tell(Tick(self._steps * self._epochs.batch))

    def _tell(self, event: Told) -> None:
        wait()
        self._turnstile.tell(event)
        self._steps, self._began = 0, time.perf_counter()


# What a loop computes itself: by models and layers of Keras, or by operations alone.
LAYERS, OPERATIONS = "layers", "operations"
# Of the steps, in how many something has to be called to be a part of them.
OFTEN = 0.5
LIBRARIES = ("keras", "tensorflow")
_FOREIGN_PACKAGES = ("perfkit", *LIBRARIES)


class LoopCalls:
    """Hears what is called beneath the function that holds the loop, until it ends."""

    def __init__(self) -> None:
        self.steps = 0
        self._over = False
        self._loop: set[CodeType] = set()
        # By function, and by kind of what the loop computes itself.
        self._eager: Counter[str] = Counter()
        self._iterators = 0

    def begin(self) -> None:
        """Listen from now on; called from where the loop asks for its batches."""
        if not self._loop:
            import keras
            import tensorflow as tf

            _before(tf.GradientTape, "gradient", self._hear_eager)
            _before(keras.Layer, "__call__", lambda f: self._hear_eager(f, LAYERS))
            _before(tf.data.Dataset, "__iter__", self._hear_iterator)
        self._loop |= {f.f_code for f in outwards(sys._getframe(1)) if is_own(f)}

    def step(self) -> None:
        """Count one more step."""
        self.steps += not self._over

    def end(self) -> None:
        """Hear no more: epochs that are hurried are not what the loop does."""
        self._over = True

    def eager(self) -> tuple[str, ...]:
        """The functions that steps call and that compute eagerly: ``"module:name"``."""
        often = (n for n, count in self._eager.items() if count >= OFTEN * self.steps)
        return tuple(name for name in often if ":" in name)

    def computes(self) -> str:
        """What steps compute eagerly in no function that has a name; "" for nothing."""
        limit = OFTEN * self.steps
        often = (kind for kind in (LAYERS, OPERATIONS) if self._eager[kind] >= limit)
        return next(often, "") if limit > 0 else ""

    def iterators_per_step(self) -> float:
        """How many iterators over datasets a step makes itself."""
        return self._iterators / max(1, self.steps)

    def _hear_eager(self, frame: FrameType, kind: str = OPERATIONS) -> None:
        import tensorflow as tf

        eager = tf.executing_eagerly() and not tf.config.functions_run_eagerly()
        if eager and not self._over:
            self._eager[_name(self._user_function(frame)) or kind] += 1

    def _hear_iterator(self, frame: FrameType) -> None:
        is_loop = frame.f_code in self._loop or self._user_function(frame) is not None
        self._iterators += is_loop and not self._over

    def _user_function(self, frame: FrameType) -> FrameType | None:
        """The user's function that the loop called and that led to a frame."""
        below = None
        for outer in outwards(frame):
            if outer.f_code in self._loop:
                return below
            if not outer.f_code.co_name.startswith("<"):
                # A train_step of theirs may be called by Keras, in a graph of its own.
                below = outer if is_own(outer) else None
        return None


def _before(holder: Any, name: str, hear: Callable[[FrameType], None]) -> None:
    """Let a method tell who calls it."""
    method = getattr(holder, name)

    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        hear(sys._getframe(1))
        return method(*args, **kwargs)

    setattr(holder, name, wrapper)


def _name(function: FrameType | None) -> str:
    """A function by its module and its place in there; "" for what is made anew."""
    if function is None or "<" in function.f_code.co_qualname:
        return ""
    return f"{function.f_globals.get('__name__')}:{function.f_code.co_qualname}"


def package_of(function: Any) -> str:
    """The package whose code a function is, or an object that can be called."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__module__", "")).partition(".")[0]


def package_at(frame: FrameType) -> str:
    """The package whose code a frame runs."""
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def is_own(frame: FrameType) -> bool:
    """Whether it runs code of the user's."""
    return package_at(frame) not in _FOREIGN_PACKAGES


# So many epochs may be begun: enough to see one of them end while all is warm.
MOST_EPOCHS = 3


def in_loop(data: Any) -> Training:
    """The data of a loop, where a change finds and replaces them, without a model.

    What is no dataset of TensorFlow or Keras can only be gone through.
    """
    is_dataset = kind_of(data) in ("tf.data", "PyDataset")
    return Training(None, data if is_dataset else lambda: iter(data), loop=True)


@dataclass
class Looping:
    """Hears of the steps of a loop, and gives it its batches.

    Args:
        epochs: Of the loop.
        max_epochs: Epochs that may be begun: the last of them does not end.
        changes: What changes its data.

    Attributes:
        training: Its data as they were given; None while no loop was begun.
        fitting: What was handed over to be fitted; None where the maker runs a loop.
        first: The first batch.
        begun: Epochs begun.
        repeated: Whether the user's code begins one epoch after another.
        length: Steps of an epoch that ended by itself; None while none has.
        hurry: End the epoch after the next step, and do not end the last.
        calls: Hears what the steps call; None where nobody needs that.
        between_s: Seconds of the user's code between two epochs; 0.0 before a second.
    """

    epochs: Epochs
    max_epochs: int = MOST_EPOCHS
    changes: Sequence[Callable[[Training], object]] = ()
    training: Training | None = None
    fitting: Training | None = None
    first: Any = None
    begun: int = 0
    repeated: bool = False
    length: int | None = None
    hurry: bool = False
    calls: LoopCalls | None = None
    counter: StepCounter = field(init=False)
    between_s: float = 0.0
    _ended: float | None = None
    _is_longer: bool = False
    _steps_made: int = 0
    _changed: dict[int, tuple[Any, Training]] = field(default_factory=dict)

    def make_training(self, maker: Callable[[], Any], turnstile: Turnstile) -> None:
        """Make what is to be fitted; a loop that runs instead goes on without an end.

        What is no training, or makes no step, is refused.
        """
        self.counter = StepCounter(turnstile, self.epochs)
        with listening(self.batches):
            returned = self._run(maker)
            if not self.training:
                self.fitting = handed_over(returned)
                return
            if not self._steps_made:
                raise BadParameterError(
                    "The loop made no step, because its data are empty or used up."
                )
            while self._steps_made and not self.hurry:
                self._steps_made = self.begun = 0
                self.counter.set_up_anew()
                self._run(maker)

    def _run(self, maker: Callable[[], Any]) -> Any:
        """Make the training; a loop that draws its batches itself ends with them."""
        try:
            return maker()
        except Exception as error:
            if not self._is_longer or type(error).__name__ not in _AT_END:
                raise
            return None

    def batches(self, data: Any) -> Iterator[Any]:
        """Give the batches of an epoch; each that is asked for ends the step before."""
        self.begun += 1
        if self._ended is not None:
            self.between_s = time.perf_counter() - self._ended
        if self.calls:
            self.calls.begin()
        self.training = self.training or in_loop(data)
        self.repeated = repeated(sys._getframe(1))
        limit = self.max_epochs if self.repeated else 1
        return self._epoch(self._with_changes(data), limit)

    def _epoch(self, training: Training, limit: int) -> Iterator[Any]:
        last, step = self.begun >= limit, 0
        try:
            for step, batch in enumerate(self._flow(training, limit), 1):
                self.first = batch if self.first is None else self.first
                yield batch
                self._steps_made += 1
                if self.calls:
                    self.calls.step()
                self.counter.step()
                if not last and (self.hurry or step == self.epochs.trial_steps):
                    break
        except GeneratorExit:
            # The user's own code left the loop.
            self.length = self.length or step
        self.counter.end_epoch()
        self._ended = time.perf_counter()

    def _flow(self, training: Training, limit: int) -> Iterator[Any]:
        """All batches of an epoch; of the last one without an end."""
        while True:
            step = 0
            data = training.data() if training.kind == "generator" else training.data
            for batch in itertools.islice(data, self.epochs.steps):
                step += 1
                yield batch
            self.length = step or self.length
            if not step or self.begun < limit:
                return
            self._is_longer = True
            if limit > 1:
                self.counter.begin_anew()

    def _with_changes(self, data: Any) -> Training:
        if id(data) not in self._changed:
            training = in_loop(data)
            for change in self.changes:
                change(training)
            # With the data, so that no others get their number.
            self._changed[id(data)] = data, training
        return self._changed[id(data)][1]


def fitted(
    maker: Callable[[], Any],
    looping: Looping,
    prepare: Callable[[Training], object] = lambda training: None,
    screening: Callable[[Training, Epochs, Turnstile], object] | None = None,
) -> Generator[Told]:
    """Train without an end: with ``fit``, or with the loop that the maker runs.

    Args:
        maker: Makes the training, in the thread that trains it: Keras keeps its
            settings for each thread apart.
        looping: Hears of the steps of a loop, if there is one.
        prepare: Prepares what is to be fitted.
        screening: Trains in turns, in place of one ``fit`` without an end.

    Yields:
        ``READY`` once the first epoch is over (the first step, where epochs have no
        end), then ticks, and a pause at each end of an epoch.
    """
    turnstile = Turnstile()

    def work() -> None:
        stand_in()
        end_passes_aside()
        tell_datasets()
        looping.make_training(maker, turnstile)
        # Where Keras computes with something else, the maker has loaded TensorFlow.
        end_passes_aside()
        if training := looping.fitting:
            prepare(training)
            if screening:
                screening(training, looping.epochs, turnstile)
            else:
                train(Block(training, looping.epochs), turnstile)

    yield from turnstile.run(work)
