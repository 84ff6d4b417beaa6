"""The networks that questions train, and data to learn from."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from perfkit.questions.shared import keras, layers

if TYPE_CHECKING:
    from collections.abc import Callable

Batch = tuple[NDArray[np.float32], NDArray[np.int32]]
# Written out where a reader sees the lines of a network.
_PICTURE = (32, 32, 3)


@dataclass(frozen=True)
class Model:
    """A network and the examples it takes, by the name that parameters have.

    ``build`` makes it untrained. Its last layer gives logits in float32, whatever
    precision the others compute in.
    """

    name: str
    description: str
    shape: tuple[int, ...]
    classes: int
    build: Callable[[], keras.Model]

    def batch(self, count: int, seed: int = 0) -> Batch:
        """``count`` examples and their labels: noise, the same for the same seed."""
        random = np.random.default_rng(seed)
        examples = random.standard_normal((count, *self.shape), np.float32)
        labels = random.integers(self.classes, size=count, dtype=np.int32)
        return examples, labels


def _dense(inputs: int, units: list[int], classes: int = 10) -> keras.Model:
    hidden = [layers.Dense(width, activation="relu") for width in units]
    # In float32, because half precision has too few digits for a loss.
    logits = layers.Dense(classes, dtype="float32")
    return keras.Sequential([keras.Input((inputs,)), *hidden, logits])


def _small_cnn() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(10, dtype="float32"),
        ]
    )


def _small_resnet() -> keras.Model:
    pictures = keras.Input((32, 32, 3))
    flow = layers.Conv2D(16, 3, padding="same", use_bias=False)(pictures)
    for filters, strides in ((16, 1), (32, 2), (64, 2)):
        flow = _block(flow, filters, strides)
    flow = layers.GlobalAveragePooling2D()(_normal(flow))
    return keras.Model(pictures, layers.Dense(10, dtype="float32")(flow))


def _block(flow: Any, filters: int, strides: int) -> Any:
    shortcut = layers.Conv2D(filters, 1, strides=strides, use_bias=False)(flow)
    for step in (strides, 1):
        conv = layers.Conv2D(filters, 3, step, padding="same", use_bias=False)
        flow = conv(_normal(flow))
    return layers.Add()([shortcut, flow])


def _normal(flow: Any) -> Any:
    return layers.Activation("relu")(layers.BatchNormalization()(flow))


_TINY = functools.partial(_dense, 100, [10], classes=2)
_DENSE = functools.partial(_dense, 784, [128])
_WIDE = functools.partial(_dense, 1024, 3 * [1024])
_BLOCKS = "three residual blocks on images of 32 x 32"
_CONVOLUTIONS = "two convolutions on images of 32 x 32"
MODELS = {
    model.name: model
    for model in (
        Model("tiny-dense", "100 numbers, 10 units, 2 classes", (100,), 2, _TINY),
        Model("dense", "784 numbers, 128 units, 10 classes", (784,), 10, _DENSE),
        Model("wide-dense", "three layers of 1024 units", (1024,), 10, _WIDE),
        Model("small-cnn", _CONVOLUTIONS, _PICTURE, 10, _small_cnn),
        Model("small-resnet", _BLOCKS, _PICTURE, 10, _small_resnet),
    )
}


_WRONG = 0.2
_STRENGTH = 24.0
_COARSE = 4


def learnable(model: Model, count: int, seed: int) -> Batch:
    """``count`` examples and their labels, the same for the same seed.

    The patterns are always the same: another seed gives other examples of one task.
    """
    noise, labels = model.batch(count, seed)
    examples = (noise + _patterns(model)[labels]).astype(np.float32)
    random = np.random.default_rng([seed, 1])
    wrong = random.random(count) < _WRONG
    labels[wrong] = random.integers(model.classes, size=int(wrong.sum()))
    return examples, labels


def _patterns(model: Model) -> NDArray[Any]:
    side, *tail = model.shape
    # Coarse patterns: what is pooled or strided over still shows them.
    coarse = (_COARSE, _COARSE, *tail[1:]) if tail else (side,)
    random = np.random.default_rng(1)
    patterns: NDArray[Any] = random.standard_normal((model.classes, *coarse))
    for axis, pixels in enumerate(model.shape[:2] if tail else (), start=1):
        patterns = np.repeat(patterns, pixels // _COARSE, axis=axis)
    return patterns * (_STRENGTH / math.sqrt(math.prod(model.shape)))
