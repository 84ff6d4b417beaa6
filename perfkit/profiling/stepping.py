"""Run the user's training for some steps, in a process of its own, and trace a few."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis import own_callbacks, raised
from perfkit.diagnosis.look import PROBLEM, TRACEBACK
from perfkit.diagnosis.maker import contain
from perfkit.diagnosis.pipeline.private import leave_files_alone
from perfkit.diagnosis.steps import listening
from perfkit.diagnosis.training import handed_over
from perfkit.errors import BadParameterError
from perfkit.experiments.shared.loops import Left, wait
from perfkit.measure.tick import Note
from perfkit.profiling.course import Course
from perfkit.profiling.marks import Marks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.diagnosis.training import Training

STEPPED = "stepped"
_ENDLESS = 10**9


def stepped(maker: Callable[[], Any], steps: int, folder: str) -> Iterator[Note]:
    """Make the training, run it, and trace some of its steps.

    Args:
        maker: Makes the training, or runs a loop marked by ``perfkit.steps``.
        steps: To trace.
        folder: Where the trace goes.

    Yields:
        The note ``"stepped"``, or ``"problem"`` with a sentence and, where the user's
        own code raised, ``"traceback"``.
    """
    try:
        yield _stepped(maker, steps, folder)
    except BadParameterError as error:
        yield Note(PROBLEM, str(error))
    except Exception as error:
        yield Note(TRACEBACK, raised.note_of(error))
        yield Note(PROBLEM, f"The training raised {raised.in_short(error)}")


def _stepped(maker: Callable[[], Any], steps: int, folder: str) -> Note:
    import tensorflow as tf

    contain(maker, folder)
    marks = Marks(folder)
    course = Course(steps, marks, wait)
    at_a_time = _run(maker, course)
    timed = course.timed
    if not timed.traced:
        raise BadParameterError(_too_short(course.made, steps))
    told = {
        "untraced_s": timed.untraced,
        "traced_s": timed.traced,
        "at_a_time": at_a_time,
        "gpus": len(tf.config.list_physical_devices("GPU")),
        "said": marks.said,
        "bytes": marks.size,
    }
    return Note(STEPPED, told)


def _run(maker: Callable[[], Any], course: Course) -> int:
    """Train until the course is over; how many steps of the user's are one of ours."""
    looped, at_a_time = Looped(course), 1
    with listening(looped), contextlib.suppress(Left):
        returned = maker()
        if looped.begun:
            return 1
        training = handed_over(returned)
        leave_files_alone(training)
        at_a_time = int(training.model.steps_per_execution)
        _fit(training, course)
    return at_a_time


def _fit(training: Training, course: Course) -> None:
    """Train with ``fit``; a step is a batch with all that callbacks do for it."""
    from keras.callbacks import LambdaCallback

    seen = first_epoch = 0

    def end() -> None:
        course.end()
        if course.over:
            raise Left

    def end_epoch() -> None:
        nonlocal seen, first_epoch
        made, seen = course.made - seen, course.made
        first_epoch = first_epoch or made
        # Of a generator that is used up Keras has kept the first batch or two.
        if not made or (training.kind == "generator" and 2 * made < first_epoch):
            raise Left

    first = LambdaCallback(on_train_batch_begin=lambda batch, logs: course.begin())
    last = LambdaCallback(
        on_train_batch_end=lambda batch, logs: end(),
        on_epoch_end=lambda epoch, logs: end_epoch(),
    )
    # Steps are looked at, and no validation: it has none of these marks.
    training.arguments["validation_freq"] = _ENDLESS
    own = own_callbacks.in_trial(training.arguments["callbacks"], training.epochs)
    training.fit([first, *own, last], epochs=_ENDLESS)


class Looped:
    """Hears of the steps of a loop of the user's own, which never gets to its end.

    Args:
        course: What its steps are for.

    Attributes:
        begun: Whether there is a loop at all.
    """

    def __init__(self, course: Course) -> None:
        self._course, self.begun = course, False

    def batches(self, data: Any) -> Iterator[Any]:
        """Give the loop its batches, the data anew where they end.

        Raises:
            Left: Enough steps were made, or there are no more data. What follows the
                loop, such as saving a model, does not run.
        """
        self.begun, made = True, -1
        while made < self._course.made and not self._course.over:
            made = self._course.made
            yield from self._epoch(data)
        raise Left

    def _epoch(self, data: Any) -> Iterator[Any]:
        batches = iter(data)
        while not self._course.over:
            self._course.begin()
            try:
                batch = next(batches)
            except StopIteration:
                return
            try:
                yield batch
            finally:
                # Also where the user's own code leaves the loop after this step.
                self._course.end()


def _too_short(made: int, steps: int) -> str:
    if not made:
        return "The training made no step: its data are empty, or used up."
    return (
        f"The data were used up after {made} steps, before {steps} could be traced; "
        "ask for fewer steps, or repeat the data."
    )
