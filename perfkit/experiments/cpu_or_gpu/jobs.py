"""What is trained on both devices, and how much work a step of it is.

The work is counted from shapes: what any device has to do at least. A step reads each
weight forward and backward, writes and reads its gradient, and reads and writes it to
learn; it writes and reads every activation and its gradient.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.experiments.shared.models import MODELS, Model

if TYPE_CHECKING:
    from collections.abc import Iterable

    import keras

_LAYERS, _CLASSES = 3, 10
_FLOAT = 4
# Times that a step touches each weight, and each activation.
_PER_WEIGHT, _PER_ACTIVATION = 6, 4


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The work of one step.

    Attributes:
        flops: Multiplications and additions.
        traffic: Bytes read and written in memory, at least.
    """

    flops: float
    traffic: float


@dataclass(frozen=True, order=True)
class Size:
    """A dense network of three equal layers, and the batch it is trained on.

    Attributes:
        width: Numbers of an example, and units of each layer.
        batch: Examples of a step.
    """

    width: int
    batch: int

    @property
    def cost(self) -> Cost:
        """The work of one step."""
        return cost(self.width, self.batch)


def weights(width: float) -> float:
    """How many weights the network of a width has, without its biases."""
    return _LAYERS * width**2 + _CLASSES * width


def cost(width: float, batch: float) -> Cost:
    """The work of a step of the dense network, whole numbers or not."""
    # Nobody needs the gradient of the examples.
    products = 3 * weights(width) - width**2
    touched = _PER_WEIGHT * weights(width) + _PER_ACTIVATION * batch * _LAYERS * width
    return Cost(flops=2 * batch * products, traffic=_FLOAT * touched)


def dense(width: int) -> Model:
    """The network of a width, with data that fit it."""
    build = functools.partial(_dense, width)
    return Model(f"width {width:,}", "three equal layers", (width,), _CLASSES, build)


def named(name: str, batch: int) -> Cost:
    """The work of a step of one of ``perfkit.experiments.shared.models``; builds it."""
    kernels, products = list[int](), list[int]()
    activations = 0
    for layer in MODELS[name].build().layers:
        activations += _count(layer.output.shape)
        if hasattr(layer, "kernel"):
            kernels.append(_count(layer.kernel.shape))
            # A kernel is used at every place of a picture, and once without one.
            products.append(kernels[-1] * _count(layer.output.shape[1:-1]))
    touched = _PER_WEIGHT * sum(kernels) + _PER_ACTIVATION * batch * activations
    flops = 2 * batch * (3 * sum(products) - products[0])
    return Cost(flops=float(flops), traffic=float(_FLOAT * touched))


def _count(shape: Iterable[int | None]) -> int:
    return math.prod(side for side in shape if side is not None)


def _dense(width: int) -> keras.Model:
    import keras

    layers = [keras.layers.Dense(width, activation="relu") for _ in range(_LAYERS)]
    logits = keras.layers.Dense(_CLASSES)
    return keras.Sequential([keras.Input((width,)), *layers, logits])
