"""The trainings that two devices are held against each other with."""

import functools
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from perfkit.engine.tick import READY, Yielded, every
from perfkit.errors import RunError
from perfkit.questions.shared.benchmark import (
    bind,
    on_one_core,
    sees_gpu,
    without_gpus,
)
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.later import keras, tf
from perfkit.questions.shared.loops import compiled, loop, step_of, wait
from perfkit.questions.shared.models import Model

CPU, GPU = "CPU:0", "GPU:0"
# What an environment may have set to keep TensorFlow from the cores that there are.
_HOLDS_BACK = (
    *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS"),
)


@dataclass(frozen=True)
class Device:
    """Something to train on.

    Variants have its ``name``, and TensorFlow its ``place``. A fresh process that calls
    ``take`` uses it and nothing else; a reader is shown the lines of the ``sources``.
    """

    name: str
    place: str
    take: Callable[[], None]
    sources: tuple[Callable[[], None], ...] = ()


def _all_cores() -> None:
    for name in _HOLDS_BACK:
        os.environ.pop(name, None)
    without_gpus()


def _one_core() -> None:
    _all_cores()
    on_one_core()


def _gpu() -> None:
    if not sees_gpu():
        raise RunError("TensorFlow cannot use a GPU here.")


ONE_CORE = Device("one core", CPU, _one_core, (bind,))
ALL_CORES = Device("all cores", CPU, _all_cores)
# All cores again, by the name that they have beside a GPU.
WHOLE_CPU = Device("CPU", CPU, _all_cores, (without_gpus,))
A_GPU = Device("GPU", GPU, _gpu)


_LAYERS, _CLASSES = 3, 10
_FLOAT = 4
# Times that a step touches each weight, and each activation.
_PER_WEIGHT, _PER_ACTIVATION = 6, 4


class Cost(NamedTuple):
    """The work of a step: it, bytes read and written in memory at least, and FLOP."""

    steps: float
    traffic: float
    flops: float


@dataclass(frozen=True, order=True)
class Size:
    """A dense network of three layers of a width, and the batch it is trained on."""

    width: int
    batch: int

    @property
    def name(self) -> str:
        """What the network is called."""
        return f"width {self.width:,}"

    @property
    def cost(self) -> Cost:
        """The work of one step."""
        return cost(self.width, self.batch)


def cost(width: float, batch: float) -> Cost:
    """The work of a step of the dense network, whole numbers or not."""
    # Without biases.
    weights = _LAYERS * width**2 + _CLASSES * width
    # Nobody needs the gradient of the examples.
    products = 3 * weights - width**2
    touched = _PER_WEIGHT * weights + _PER_ACTIVATION * batch * _LAYERS * width
    return Cost(steps=1.0, traffic=_FLOAT * touched, flops=2 * batch * products)


def dense(width: int) -> Model:
    """The network of a width, with data that fit it."""
    build = functools.partial(_dense, width)
    return Model(f"width {width:,}", "three equal layers", (width,), _CLASSES, build)


def _dense(width: int) -> "keras.Model":
    layers = [keras.layers.Dense(width, activation="relu") for _ in range(_LAYERS)]
    logits = keras.layers.Dense(_CLASSES)
    model = keras.Sequential([keras.Input((width,)), *layers, logits])
    return model


def code_of_training(device: Device, model: Model) -> str:
    """The lines of a training on a device, as a reader types them."""
    return code_of(*device.sources, model.build, compiled, loop)


def train(device: Device, model: Model, batch: int) -> Iterator[Yielded]:
    """Train a fresh network on a batch that stays on a device, without an end.

    This process uses no other device from now on.
    """
    device.take()
    # As a graph; a step does not wait for the device.
    step = compiled(step_of(built(device, model)))
    with tf.device(device.place):
        there = tuple(tf.identity(tf.constant(part)) for part in model.batch(batch))
    yield READY
    yield from every(loop(itertools.repeat(there), step), sync=wait)


def built(device: Device, model: Model) -> "keras.Model":
    """Make the network on its device; ``RunError`` if TensorFlow put it elsewhere."""
    with tf.device(device.place):
        network = model.build()
    place = network.trainable_variables[0].value.device
    if device.place not in place:
        raise RunError(f"The network lies on {place or 'no device'} and was not timed.")
    return network
