"""Which steps of a training warm up, are timed, or are traced: one after another.

The tracer costs something itself. So the same number of steps is timed without it,
several times before and after, in the same process.
"""

import contextlib
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from perfkit.engine.trial import Note
from perfkit.errors import BadParameterError
from perfkit.questions.shared.loops import Left, wait
from perfkit.training.diagnose import failure, listening
from perfkit.training.diagnose.maker import contain
from perfkit.training.diagnose.pipeline.memory import leave_files_alone
from perfkit.training.diagnose.training import Training, handed_over, prepare_callbacks


class Marks:
    """Records a trace into a folder.

    ``all_operations`` records those, too, that TensorFlow considers cheap.
    """

    def __init__(self, folder: str, *, all_operations: bool = False) -> None:
        self._folder, self._all_operations = folder, all_operations

    def start(self) -> None:
        """Begin to record; another profiler in this training is refused."""
        import tensorflow as tf

        # None for TensorFlow's own levels: operations, and no Python calls.
        options = None
        if self._all_operations:
            levels = {"host_tracer_level": 3, "python_tracer_level": 0}
            levels |= {"device_tracer_level": 1, "delay_ms": 0}
            indices = {name: _Index(level) for name, level in levels.items()}
            options = tf.profiler.experimental.ProfilerOptions(**indices)
        try:
            tf.profiler.experimental.start(self._folder, options=options)
        except tf.errors.AlreadyExistsError:
            raise BadParameterError(
                "Another profiler runs in this training; remove it, such as the "
                "profile_batch of a TensorBoard callback."
            ) from None

    def stop(self) -> None:
        """End, and write the trace."""
        import tensorflow as tf

        tf.profiler.experimental.stop()

    def mark(self, number: int) -> Any:
        """Mark what is done within it as a step."""
        import tensorflow as tf

        return tf.profiler.experimental.Trace("train", step_num=number, _r=1)


@dataclass(frozen=True)
class _Index:
    """A number that is no ``int``: of those TensorFlow 2.20 and 2.21 take no notice."""

    value: int

    def __index__(self) -> int:
        return self.value


def traces(folder: str) -> list[Path]:
    """The files of a trace."""
    return sorted(Path(folder).rglob("*.xplane.pb"))


# Steps are warm after so many of them that took so long together, or a hundred.
_FEWEST_WARM, _WARM_S, _MOST_WARM = 3, 1.5, 100
# On either side of the trace blocks of steps are timed for about so long.
_SIDE_S, _MOST_BLOCKS = 2.0, 10


class Request(NamedTuple):
    """What the next step is for.

    A step that is traced has a ``number``. After the ``last`` of several the device has
    to be done before its time is taken.
    """

    number: int | None = None
    last: bool = False


class Course:
    """Follows a plan through a training that tells where its steps begin and end.

    So many ``steps`` are in the trace, and in each block that is timed without it.

    Attributes:
        untraced: Seconds of a step, for each block of steps without the tracer.
        traced: Seconds of each traced step.
        made: Steps that have ended.
        over: Whether no more steps are wanted.
        looped: Whether a loop of the user's own has asked for batches.
    """

    def __init__(
        self,
        steps: int,
        profiler: Marks,
        sync: Callable[[], object],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.untraced, self.traced = list[float](), list[float]()
        self.made, self.over, self.looped = 0, False, False
        self._steps, self._profiler = steps, profiler
        self._sync, self._clock = sync, clock
        self._plan = self._follow()
        self._request = next(self._plan)
        self._began: float | None = None
        self._mark = contextlib.ExitStack()

    def _follow(self) -> Generator[Request, float, None]:
        """Ask for one step after another; each is answered by its seconds."""
        count, spent = 0, 0.0
        while count < _FEWEST_WARM or (spent < _WARM_S and count < _MOST_WARM):
            spent += yield Request()
            count += 1
        # What a device still has to do for these must not count for the next ones.
        yield Request(last=True)
        usual = yield Request(last=True)
        block_s = self._steps * usual or _SIDE_S
        blocks = max(1, min(_MOST_BLOCKS, int(_SIDE_S / block_s)))
        for number in range(2 * blocks):
            if number == blocks:
                self._profiler.start()
                traced = yield from self._block(traced=True)
                self._profiler.stop()
                self.traced = traced
            self.untraced.append(sum((yield from self._block())) / self._steps)

    def _block(self, *, traced: bool = False) -> Generator[Request, float, list[float]]:
        """Ask for steps; returns the seconds of each."""
        seconds = []
        for number in range(self._steps):
            last = number == self._steps - 1
            seconds.append((yield Request(number if traced else None, last=last)))
        return seconds

    def begin(self) -> None:
        """A step begins."""
        # The data may have ended where it was to begin: it begins with the next ones.
        if self._began is None and not self.over:
            self._began = self._clock()
            if self._request.number is not None:
                self._mark.enter_context(self._profiler.mark(self._request.number))

    def end(self) -> None:
        """The step has ended."""
        if self._began is None:
            return
        self._mark.close()
        if self._request.last:
            self._sync()
        spent, self._began = self._clock() - self._began, None
        self.made += 1
        try:
            self._request = self._plan.send(spent)
        except StopIteration:
            self.over = True

    def batches(self, data: Any) -> Iterator[Any]:
        """Give a loop of the user's own its batches, the data anew where they end.

        Raises:
            Left: Enough steps were made, or there are no more data. What follows the
                loop, such as saving a model, does not run.
        """
        self.looped, before = True, -1
        while before < self.made and not self.over:
            before, batches = self.made, iter(data)
            while not self.over:
                self.begin()
                try:
                    batch = next(batches)
                except StopIteration:
                    break
                try:
                    yield batch
                finally:
                    # Also where the user's own code leaves the loop after this step.
                    self.end()
        raise Left


STEPPED = "stepped"
_ENDLESS = 10**9


@failure.as_notes
def stepped(maker: Callable[[], Any], steps: int, folder: str) -> Iterator[Note]:
    """Make the training, run it, and trace so many of its steps into a folder."""
    import tensorflow as tf

    contain(maker, folder)
    course = Course(steps, Marks(folder), wait)
    at_a_time = _run(maker, course)
    if not course.made:
        why = "The training made no step, because its data are empty or used up."
        raise BadParameterError(why)
    if not course.traced:
        raise BadParameterError(
            f"The data ended after {course.made} steps, before {steps} could be "
            "traced; ask for fewer steps, or repeat the data."
        )
    seen = {"untraced_s": course.untraced, "traced_s": course.traced}
    gpus = len(tf.config.list_physical_devices("GPU"))
    yield Note(STEPPED, seen | {"at_a_time": at_a_time, "gpus": gpus})


def _run(maker: Callable[[], Any], course: Course) -> int:
    """Train until the course is over; how many steps of the user's are one of ours."""
    at_a_time = 1
    with listening(course.batches), contextlib.suppress(Left):
        returned = maker()
        if course.looped:
            return 1
        training = handed_over(returned)
        leave_files_alone(training)
        at_a_time = int(training.model.steps_per_execution)
        _fit(training, course)
    return at_a_time


def _fit(training: Training, course: Course) -> None:
    """Train with ``fit``; a step is a batch with all that callbacks do for it."""
    from keras.callbacks import LambdaCallback

    epochs_steps: list[int] = []

    def end(*_: Any, **__: Any) -> None:
        course.end()
        if course.over:
            raise Left

    def end_epoch(*_: Any, **__: Any) -> None:
        steps = course.made - sum(epochs_steps)
        epochs_steps.append(steps)
        # Of a generator that is used up Keras has kept the first batch or two.
        if not steps or (training.kind == "generator" and 2 * steps < epochs_steps[0]):
            raise Left

    first = LambdaCallback(on_train_batch_begin=lambda *_, **__: course.begin())
    last = LambdaCallback(on_train_batch_end=end, on_epoch_end=end_epoch)
    # Steps are looked at, and no validation: it has none of these marks.
    training.arguments["validation_freq"] = _ENDLESS
    callbacks = training.arguments["callbacks"]
    callbacks = prepare_callbacks(callbacks, training.epochs or 1)
    training.fit([first, *callbacks, last], epochs=_ENDLESS)
