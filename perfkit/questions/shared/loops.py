"""Loops that train, and steps within fit, cut into ticks."""

from __future__ import annotations

import functools
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from perfkit.engine.trial import READY, TICK_S, Note, Pause, Tick, every
from perfkit.questions.shared import keras, tf
from perfkit.questions.shared.models import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from perfkit.engine.trial import Yielded

    Step = Callable[[Any, Any], tf.Tensor]
    Loop = Callable[[Any, Any], Iterator[int]]
    Array = NDArray[Any]

Told = Tick | Pause | Note
NOTE = "traces"
# Steps of an epoch longer than any trial: what its end costs is another question.
ENDLESS = 10**9


def described(argument: Any) -> str:
    """An argument as tracing sees it: ``"float32[32, 784]"`` or ``"int 7"``."""
    shape = getattr(argument, "shape", None)
    if shape is None:
        return f"{type(argument).__name__} {argument}"
    sizes = ["?" if size is None else str(size) for size in shape]
    # PyTorch writes "torch.float32".
    dtype = getattr(argument.dtype, "name", str(argument.dtype).rpartition(".")[2])
    return f"{dtype}[{', '.join(sizes)}]"


def eager(
    job: Job, network: keras.Model, make_step: Callable[..., Any] | None = None
) -> Iterator[Yielded]:
    """Train in a loop in which Python runs every operation, or a step of one's own."""
    make_step = make_step or gradient_step
    # As all others do: making an optimizer is in nobody's first call.
    step = make_step(network, optimizer_for(network), loss_function())
    yield READY
    yield from every(loop(job.batches(), step), sync=wait)


def loop(batches: Any, step: Any) -> Iterator[int]:
    """Make a step on each batch."""
    for features, labels in batches:
        step(features, labels)
        yield len(labels)


def traced(job: Job, network: keras.Model, **options: Any) -> Iterator[Yielded]:
    """Train with a step that is a ``tf.function``, with ``options`` as of that."""
    yield from looped(job, step_of(network), functools.partial(compiled, **options))


def compiled(step: Any, **options: Any) -> Any:
    """Make a graph of a step."""
    step = tf.function(step, **options)
    return step


def looped(
    job: Job, plain: Callable[..., Any], graph: Callable[[Any], Any], loop: Loop = loop
) -> Iterator[Yielded]:
    """Make steps of a graph, and tell of its traces after tick 1, 2, 4 and so on.

    ``graph`` makes it of the plain step, or gives that back.
    """
    counts = {"steps": 0, "traces": 0}

    def trace() -> None:
        counts["traces"] += 1

    # AutoGraph rewrites what a user's step calls, and must not rewrite this.
    tell = tf.autograph.experimental.do_not_convert(trace)

    def body(*batch: Any) -> Any:
        tell()
        return plain(*batch)

    def steps() -> Iterator[int]:
        for examples in loop(job.batches(), step):
            counts["steps"] += 1
            yield examples

    step = graph(body)
    yield READY
    passed, due = 0, 1
    for tick in every(steps(), sync=wait):
        yield tick
        passed += isinstance(tick, Tick)
        if passed >= due:
            yield Note(NOTE, dict(counts))
            due *= 2


def step_of(network: keras.Model, optimizer: Any = None) -> Step:
    """Give the plain Python function that trains on one batch.

    The optimizer is a built one; without any it is plain gradient descent.
    """
    return gradient_step(network, optimizer or optimizer_for(network), loss_function())


def gradient_step(model: Any, optimizer: Any, loss_of: Any) -> Step:
    """Make a step of gradient descent."""

    def step(features: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(features, training=True))
            # ``fit`` does this by itself; what divides by the scale always does.
            scaled = optimizer.scale_loss(loss)
        weights = model.trainable_variables
        optimizer.apply(tape.gradient(scaled, weights), weights)
        return loss

    return step


def compile_model(model: Any, optimizer: Any, loss: Any, **options: Any) -> None:
    """Compile a model for ``fit``."""
    model.compile(optimizer=optimizer, loss=loss, **options)


def fit(model: Any, batches: Any, steps: Any, **options: Any) -> None:
    """Train with ``fit`` on batches in their order."""
    model.fit(batches, steps_per_epoch=steps, **options)


def wait() -> None:
    """Wait until the device has done everything it was given."""
    tf.test.experimental.sync_devices()


class Left(BaseException):
    """Ends a ``fit`` whose ticks nobody wants any more, whatever else is caught."""


class Turnstile:
    """Lets two threads work in turns: one tells, the other hears."""

    def __init__(self) -> None:
        self._told, self._go_on = threading.Semaphore(0), threading.Semaphore(0)
        self._tick: Told = Tick(0)
        self._leaving = False

    def tell(self, message: Told) -> None:
        """Hand over what a trial is to yield, and stand still until it is stamped."""
        if self._leaving:
            raise Left
        self._tick = message
        self._told.release()
        self._go_on.acquire()
        if self._leaving:
            raise Left

    def run(self, work: Callable[[], object]) -> Iterator[Told]:
        """Run ``work`` in a thread and yield what it tells; raise what it raises."""
        with ThreadPoolExecutor(1, "perfkit-fit") as thread:
            working = thread.submit(work)
            working.add_done_callback(lambda _: self._told.release())
            try:
                while self._told.acquire() and not working.done():
                    yield self._tick
                    self._go_on.release()
            except GeneratorExit:
                self._leaving = True
                self._go_on.release()
                return
            working.result()


def ticks(
    fit: Callable[[keras.callbacks.Callback], object],
    *,
    examples: int,
    sync: Callable[[], object] = lambda: None,
) -> Iterator[Told]:
    """Run ``fit`` and yield a tick whenever one is long enough.

    ``fit`` calls ``model.fit`` with the callback it is given among the others, on so
    many ``examples`` in a batch. ``sync`` waits for the device, just before a tick
    ends.
    """
    turnstile = Turnstile()
    reached = steps = 0
    # The first call is a tick of its own.
    due = 0.0

    def begin(epoch: int, logs: Any) -> None:
        nonlocal reached
        reached = 0

    def reach(batch: int, logs: Any) -> None:
        nonlocal reached, steps
        # An execution may hold several steps.
        steps, reached = steps + batch + 1 - reached, batch + 1
        if time.perf_counter() >= due:
            end()

    def end(logs: Any = None) -> None:
        nonlocal steps, due
        if steps:
            sync()
            turnstile.tell(Tick(steps * examples))
            steps, due = 0, time.perf_counter() + TICK_S

    def work() -> None:
        hooks = {"on_epoch_begin": begin, "on_train_batch_end": reach}
        fit(keras.callbacks.LambdaCallback(**hooks, on_train_end=end))

    yield from turnstile.run(work)


Feed = Literal["even", "ragged", "changing"]
# Batches in memory; a training goes through them again and again.
BATCHES = 8
LEARNING_RATE = 0.01


@dataclass(frozen=True)
class Job:
    """A training that has not begun, of so many steps, or without an end.

    The seed is that of the weights and the examples. Of ``"ragged"`` batches every
    eighth has half of the examples, as the last of an epoch has. Of ``"changing"`` ones
    no two in a row have the same number, and their mean is ``batch``.
    """

    model: str
    batch: int
    seed: int = 0
    steps: int | None = None
    feed: Feed = "even"

    def first(self, steps: int) -> Job:
        """The same training, ended after so many steps."""
        return replace(self, steps=steps)

    def network(self) -> keras.Model:
        """Make the network with fresh weights: the same for the same seed."""
        keras.utils.set_random_seed(self.seed)
        return MODELS[self.model].build()

    def batches(self) -> tf.data.Dataset:
        """All batches, in order: ``steps`` of them, or without an end."""
        dataset = _FEEDS[self.feed](self).repeat()
        return dataset if self.steps is None else dataset.take(self.steps)

    def examples(self, count: int) -> tuple[Array, Array]:
        """So many examples with their labels."""
        return MODELS[self.model].batch(count, self.seed)


def optimizer_for(network: keras.Model) -> keras.optimizers.Optimizer:
    """What updates the weights, with everything it needs already made."""
    optimizer = keras.optimizers.SGD(LEARNING_RATE)
    optimizer.build(network.trainable_variables)
    return optimizer


def loss_function() -> keras.losses.Loss:
    """What all variants minimise."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def _even(job: Job) -> tf.data.Dataset:
    batches = (
        numbers.reshape(BATCHES, job.batch, *numbers.shape[1:])
        for numbers in job.examples(BATCHES * job.batch)
    )
    return tf.data.Dataset.from_tensor_slices(tuple(batches))


def _ragged(job: Job) -> tf.data.Dataset:
    count = (BATCHES - 1) * job.batch + max(1, job.batch // 2)
    *full, last = batched(job.examples(count), job.batch)
    # In batches already, as the even ones are: cutting them has a cost of its own.
    even = tuple(tf.stack(parts) for parts in zip(*full, strict=True))
    dataset = tf.data.Dataset.from_tensor_slices(even)
    return dataset.concatenate(tf.data.Dataset.from_tensors(last))


def batched(arrays: Any, batch: int, **options: Any) -> Any:
    """Cut arrays into batches; the last one may be smaller."""
    batches = tf.data.Dataset.from_tensor_slices(arrays).batch(batch, **options)
    return batches


def _changing(job: Job) -> tf.data.Dataset:
    features, labels = map(tf.constant, job.examples(2 * job.batch - 1))
    # Every size from 1 to twice the batch less 1, one large for one small.
    pairs = ((job.batch + step, job.batch - step) for step in range(1, job.batch))
    sizes = [job.batch, *itertools.chain.from_iterable(pairs)]
    return resized(features, labels, sizes)


def resized(features: Any, labels: Any, sizes: Any) -> Any:
    """Give batches of these sizes, one after another."""
    batches = tf.data.Dataset.from_tensor_slices(sizes)
    batches = batches.map(lambda size: (features[:size], labels[:size]))
    return batches


_FEEDS = {"even": _even, "ragged": _ragged, "changing": _changing}
