"""Train on one batch that stays on its device: what the device itself can do."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from perfkit.errors import RunError
from perfkit.experiments.shared.loops import step_of, wait
from perfkit.measure.tick import READY, every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import keras
    import tensorflow as tf

    from perfkit.experiments.cpu_or_gpu.devices import Device
    from perfkit.experiments.shared.models import Model
    from perfkit.measure.tick import Yielded

    Batch = tuple[tf.Tensor, tf.Tensor]
    Step = Callable[[Any, Any], tf.Tensor]


def resident(device: Device, model: Model, batch: int) -> Iterator[Yielded]:
    """Train a fresh network, step after step, without an end.

    Args:
        device: Where; this process uses nothing else from now on.
        model: What is trained, with data that fit it.
        batch: Examples of a step.
    """
    device.take()
    step = compiled(built(device, model))
    features, labels = on(device, model.batch(batch))
    yield READY

    def steps() -> Iterator[int]:
        for _ in itertools.count():
            step(features, labels)
            yield batch

    yield from every(steps(), sync=wait)


def built(device: Device, model: Model) -> keras.Model:
    """Make the network on its device.

    Raises:
        RunError: TensorFlow put it elsewhere.
    """
    import tensorflow as tf

    with tf.device(device.place):
        network = model.build()
    place = network.trainable_variables[0].value.device
    if device.place not in place:
        raise RunError(f"The network lies on {place or 'no device'} and was not timed.")
    return network


def compiled(network: keras.Model) -> Step:
    """Give a training step as a graph; it does not wait for the device."""
    import tensorflow as tf

    step: Step = tf.function(step_of(network), autograph=False)
    return step


def on(device: Device, batch: tuple[Any, Any]) -> Batch:
    """Copy a batch to the device."""
    import tensorflow as tf

    with tf.device(device.place):
        features, labels = (tf.identity(tf.constant(part)) for part in batch)
    return features, labels
