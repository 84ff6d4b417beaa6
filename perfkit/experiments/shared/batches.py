"""What a trial of a batch size does: train, see whether it fits, or learn for real."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from perfkit.experiments.shared import held_memory as memory
from perfkit.experiments.shared import inside_fit
from perfkit.experiments.shared.learnable import learnable
from perfkit.experiments.shared.memory_forecast import forecast
from perfkit.experiments.shared.models import MODELS
from perfkit.measure.tick import READY, Note, Pause, Tick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import keras
    import tensorflow as tf

    from perfkit.experiments.shared.models import Model
    from perfkit.measure.tick import Yielded

    Step = Callable[[Any, Any], object]

# Longer than any trial: what the end of an epoch costs is another question.
_ENDLESS = 10**9
# Steps after which a training holds all that it will ever hold.
STEPS_TO_FILL = 3
# A batch is filled with copies of so many examples: their values cost no time, and
# making them all would take more memory than training on them.
_DIFFERENT = 64
# Examples to learn from, and others to see what was learnt.
_LEARNT, _HELD_OUT = 2048, 512
# The loss is looked at after so many examples, and so often at most.
_BETWEEN_LOOKS, _LOOKS = 512, 200


def training(name: str, batch: int) -> Iterator[Yielded]:
    """Train a fresh network on one batch, which is in memory, without an end."""
    at_start = memory.start()
    made = _built(MODELS[name])
    yield from fitted(*made, _filled(MODELS[name], batch), at_start)


def fitted(
    network: keras.Model,
    optimizer: keras.Optimizer,
    batch: tuple[tf.Tensor, tf.Tensor],
    at_start: memory.Start,
    steps: int = _ENDLESS,
) -> Iterator[Yielded]:
    """Train with ``fit``, as ``compile`` leaves it, on one batch again and again.

    Args:
        network: What is trained.
        optimizer: With everything it needs already made.
        batch: Examples and labels.
        at_start: What the memory that is noted stands above, once it is filled.
        steps: How many to make.
    """
    import tensorflow as tf

    network.compile(optimizer, _loss())
    again, size = tf.data.Dataset.from_tensors(batch).repeat(), len(batch[1])
    fit = functools.partial(
        network.fit, again, steps_per_epoch=steps, verbose=0, shuffle=False
    )
    yield READY
    left = STEPS_TO_FILL * size
    for told in inside_fit.ticks(
        lambda counting: fit(callbacks=[counting]),
        examples=size,
        sync=tf.test.experimental.sync_devices,
    ):
        yield told
        if left > 0 and isinstance(told, Tick):
            left -= told.examples
            if left <= 0:
                yield Note("memory", memory.with_gpu(at_start))


def fitting(name: str, batch: int) -> Iterator[Yielded]:
    """Train a few steps and end: a batch that gets so far fits."""
    at_start = memory.start()
    yield Note("batch", batch)
    made = _built(MODELS[name])
    filled = _filled(MODELS[name], batch)
    yield from fitted(*made, filled, at_start, STEPS_TO_FILL)


def learning(name: str, batch: int) -> Iterator[Yielded]:
    """Train for real, and look at the loss of examples that were held out."""
    import tensorflow as tf

    model = MODELS[name]
    network, optimizer = _built(model)
    step, loss_of = _step(network, optimizer), _loss()
    made = learnable(model, max(_LEARNT, batch) + _HELD_OUT, seed=0)
    examples, labels = (tf.constant(part) for part in made)
    seen, answers = examples[-_HELD_OUT:], labels[-_HELD_OUT:]
    count = len(labels) - _HELD_OUT
    _call_first(step, network, optimizer, (examples[:batch], labels[:batch]))
    losses = [float(loss_of(answers, network(seen, training=False)))]
    yield Note("batch", batch)
    yield Note("losses", losses)
    yield READY
    done = since = 0
    while len(losses) < _LOOKS:
        chosen = (done + tf.range(batch)) % count
        step(tf.gather(examples, chosen), tf.gather(labels, chosen))
        done, since = done + batch, since + batch
        if since >= _BETWEEN_LOOKS:
            tf.test.experimental.sync_devices()
            yield since
            losses.append(float(loss_of(answers, network(seen, training=False))))
            yield Note("losses", list(losses))
            yield Pause("looking at the loss")
            since = 0


def prepare(name: str) -> Iterator[Yielded]:
    """Tell what a step will hold, and on what it will run; takes no GPU."""
    import tensorflow as tf

    gpus = len(tf.config.list_physical_devices("GPU"))
    tf.config.set_visible_devices([], "GPU")
    network, optimizer = _built(MODELS[name])
    yield Note("gpus", gpus)
    yield Note("forecast", forecast(network, optimizer).described())


def _built(model: Model) -> tuple[keras.Model, keras.Optimizer]:
    import keras

    network, optimizer = model.build(), keras.optimizers.Adam()
    optimizer.build(network.trainable_variables)
    return network, optimizer


def _loss() -> Any:
    import keras

    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def _step(network: keras.Model, optimizer: keras.Optimizer) -> Step:
    """Give a function that trains on one batch; it does not wait for the device."""
    import tensorflow as tf

    loss_of, weights = _loss(), network.trainable_variables

    def step(examples: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, network(examples, training=True))
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    compiled: Step = tf.function(step, autograph=False)
    return compiled


def _filled(model: Model, batch: int) -> tuple[tf.Tensor, tf.Tensor]:
    import tensorflow as tf

    examples, labels = model.batch(min(batch, _DIFFERENT))
    chosen = tf.range(batch) % len(labels)
    return tf.gather(examples, chosen), tf.gather(labels, chosen)


def _call_first(
    step: Step, network: keras.Model, optimizer: keras.Optimizer, batch: tuple[Any, Any]
) -> None:
    """Trace the step without having learnt anything from it."""
    variables = [*network.variables, *optimizer.variables]
    before = [variable.numpy() for variable in variables]
    step(*batch)
    for variable, value in zip(variables, before, strict=True):
        variable.assign(value)
