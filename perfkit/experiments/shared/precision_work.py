"""What a trial of a precision does: train, learn for real, or show the loss scale."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from perfkit.experiments.shared import held_memory as memory
from perfkit.experiments.shared.batches import fitted
from perfkit.experiments.shared.learnable import learnable
from perfkit.experiments.shared.memory_forecast import forecast
from perfkit.experiments.shared.models import MODELS
from perfkit.experiments.shared.precision import FLOAT16, FLOAT32, PRECISIONS
from perfkit.measure.tick import READY, Note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import keras
    import tensorflow as tf

    from perfkit.experiments.shared.precision import Precision
    from perfkit.measure.tick import Yielded

    Step = Callable[[Any, Any], tf.Tensor]

# Notes of a training that learns, and of one that shows its loss scale.
CURVE, SCALE = "curve", "loss scale"
# A training that learns: examples in a batch, steps, and how many make up one loss.
LEARNT_BATCH, STEPS, BETWEEN = 16, 40, 5
# Keras doubles the scale after 2000 good steps, which is more than anybody waits for.
GROWTH, SCALED_STEPS = 8, 72
# A step that is only tried: with so few examples first, and with all of them where
# that gives reason to doubt and is not far too long itself.
_FEW, _MOMENT_S, _TOO_LONG_S = 8, 0.2, 5.0
_CALLS = 4


def training(name: str, precision: str, batch: int) -> Iterator[Yielded]:
    """Train a fresh network on one batch, which is in memory, without an end."""
    import tensorflow as tf

    at_start = memory.start()
    network, optimizer = _built(name, PRECISIONS[precision])
    examples, labels = map(tf.constant, MODELS[name].batch(batch))
    yield from fitted(network, optimizer, (examples, labels), at_start)


def learning(name: str, precision: str, seed: int) -> Iterator[Yielded]:
    """Train for real, and keep the loss of examples when they are seen first.

    All precisions begin with the same weights and see the same examples.
    """
    weights = _built(name, PRECISIONS[FLOAT32], seed)[0].get_weights()
    network, optimizer = _built(name, PRECISIONS[precision], seed)
    # Another precision draws other weights from the same seed.
    network.set_weights(weights)
    step = step_of(network, optimizer)
    losses: list[float] = []
    yield READY
    for examples, labels in _to_learn(name, seed, STEPS):
        losses.append(float(step(examples, labels)))
        yield LEARNT_BATCH
        if len(losses) % BETWEEN == 0:
            told = {"precision": precision, "seed": seed, "every": BETWEEN}
            yield Note(CURVE, told | {"losses": _means(losses)})


def scaling(name: str, seed: int) -> Iterator[Yielded]:
    """Train in float16 and follow the loss scale, which grows soon here."""
    import keras

    PRECISIONS[FLOAT16].choose()
    keras.utils.set_random_seed(seed)
    network = MODELS[name].build()
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.Adam(), dynamic_growth_steps=GROWTH
    )
    optimizer.build(network.trainable_variables)
    step = step_of(network, optimizer)
    scales = [float(optimizer.dynamic_scale)]
    yield READY
    for examples, labels in _to_learn(name, seed, SCALED_STEPS):
        step(examples, labels)
        scales.append(float(optimizer.dynamic_scale))
        yield LEARNT_BATCH
        if len(scales) % GROWTH == 1:
            made = int(optimizer.iterations)
            told = {"model": name, "scales": list(scales), "updates": made}
            yield Note(SCALE, told)


def step_of(network: keras.Model, optimizer: keras.Optimizer) -> Step:
    """Give a function that trains on one batch; it does not wait for the device."""
    import keras
    import tensorflow as tf

    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    weights = network.trainable_variables

    def step(examples: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, network(examples, training=True))
            # ``fit`` does this by itself; what divides by the scale always does.
            scaled = optimizer.scale_loss(loss)
        optimizer.apply(tape.gradient(scaled, weights), weights)
        return loss

    compiled: Step = tf.function(step, autograph=False)
    return compiled


def seconds_of_step(name: str, precision: Precision, batch: int) -> float:
    """Time one step, so far as that takes no longer than a moment.

    Args:
        name: Of the network.
        precision: To train it in.
        batch: Examples in the step. Where a few of them take long already, the time
            is worked out from those.
    """
    few = min(batch, _FEW)
    about = _timed(name, precision, few) * batch / few
    if about <= _MOMENT_S or about > _TOO_LONG_S:
        return about
    return _timed(name, precision, batch)


def bytes_of_step(name: str, precision: Precision, batch: int) -> int:
    """What a step of so many examples holds, from the network's shapes alone."""
    return forecast(*_built(name, precision)).of(batch)


def _timed(name: str, precision: Precision, batch: int) -> float:
    import tensorflow as tf

    step = step_of(*_built(name, precision))
    examples, labels = map(tf.constant, MODELS[name].batch(batch))
    taken: list[float] = []
    # The first call traces as well, and says nothing where another can be afforded.
    while len(taken) < _CALLS and sum(taken) < _TOO_LONG_S:
        began = time.perf_counter()
        float(step(examples, labels))
        taken.append(time.perf_counter() - began)
    return min(taken)


def _built(
    name: str, precision: Precision, seed: int = 0
) -> tuple[keras.Model, keras.Optimizer]:
    """A fresh network in a precision, and what updates it."""
    import keras

    precision.choose()
    keras.utils.set_random_seed(seed)
    network, optimizer = MODELS[name].build(), precision.optimizer()
    optimizer.build(network.trainable_variables)
    return network, optimizer


def _to_learn(
    name: str, seed: int, steps: int
) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
    """Batches of examples that are seen once each."""
    import tensorflow as tf

    examples, labels = learnable(MODELS[name], steps * LEARNT_BATCH, seed)
    for start in range(0, len(labels), LEARNT_BATCH):
        part = slice(start, start + LEARNT_BATCH)
        yield tf.constant(examples[part]), tf.constant(labels[part])


def _means(losses: list[float]) -> list[float | None]:
    """The mean of every few losses; None where it is no number."""
    groups = [losses[at : at + BETWEEN] for at in range(0, len(losses), BETWEEN)]
    means = [sum(group) / len(group) for group in groups]
    return [mean if math.isfinite(mean) else None for mean in means]
