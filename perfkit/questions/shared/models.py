"""The networks that questions train, data to learn from, and parts for notebooks.

A notebook hands over the parts, so that what its reader is to change, and nothing
else, is written in its cells.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from perfkit.questions.shared import keras, layers, tf

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


_PICTURES, _CLASSES = 2048, 10
# So many are drawn and encoded; the rest are those again.
_DIFFERENT = 16
_SIDE = 224
# Most sentences are short and a few are long: words of the longest, and the mean.
_SENTENCES, _LONGEST, _MEAN, _WORDS = 2048, 200, 30, 1000


def pictures() -> tf.data.Dataset:
    """A data set of JPEG files in memory, each with its label; none is decoded yet."""
    order = np.arange(_PICTURES) % _DIFFERENT
    files = tf.constant([smooth_jpeg(seed) for seed in range(_DIFFERENT)])
    labels = order % _CLASSES
    return tf.data.Dataset.from_tensor_slices((tf.gather(files, order), labels))


def smooth_jpeg(seed: int) -> bytes:
    """Encode smooth noise, which takes about as long to decode as a photograph."""
    rough = np.random.default_rng(seed).random((_SIDE // 16, _SIDE // 16, 3))
    smooth = tf.image.resize(255 * rough, (_SIDE, _SIDE), method="bicubic")
    picture = tf.cast(tf.clip_by_value(smooth, 0, 255), tf.uint8)
    encoded: bytes = tf.io.encode_jpeg(picture, quality=95).numpy()
    return encoded


def decode(file: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Decode one picture, make it small, and mirror half of them."""
    picture = tf.image.resize(tf.io.decode_jpeg(file, channels=3), _PICTURE[:2])
    return tf.image.random_flip_left_right(picture) / 255, label


def decode_bytes(file: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Decode one picture and make it small; its pixels stay bytes."""
    picture = tf.image.resize(tf.io.decode_jpeg(file, channels=3), _PICTURE[:2])
    return tf.cast(picture, tf.uint8), label


def as_floats(pixels: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Turn bytes, of one picture or of many, into numbers from 0 to 1."""
    return tf.cast(pixels, tf.float32) / 255, label


def sentences() -> tf.data.Dataset:
    """A data set of sentences, each with its label: numbers of words, unpadded."""
    rng = np.random.default_rng(0)
    words = rng.integers(1, _WORDS, (_SENTENCES, _LONGEST))
    lengths = np.clip(rng.exponential(_MEAN, _SENTENCES).astype(int), 3, _LONGEST)
    labels = rng.integers(2, size=_SENTENCES)

    def cut(words: tf.Tensor, length: tf.Tensor, label: tf.Tensor) -> tuple[Any, Any]:
        return words[:length], label

    return tf.data.Dataset.from_tensor_slices((words, lengths, labels)).map(cut)


def reader() -> keras.Model:
    """A small network that reads sentences of any length, compiled."""
    flow = [
        keras.Input((None,), dtype="int64"),
        layers.Embedding(_WORDS, 64),
        layers.Conv1D(128, 5, padding="same", activation="relu"),
        layers.GlobalMaxPooling1D(),
        layers.Dense(2),
    ]
    return _compiled(keras.Sequential(flow))


def classifier() -> keras.Model:
    """A small dense network for what ``learnable`` gives, compiled."""
    return _compiled(MODELS["dense"].build())


def network() -> keras.Model:
    """A small convolutional network, compiled."""
    flow = [
        keras.Input((32, 32, 3)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(_CLASSES),
    ]
    return _compiled(keras.Sequential(flow))


def _compiled(model: keras.Model) -> keras.Model:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    return model
