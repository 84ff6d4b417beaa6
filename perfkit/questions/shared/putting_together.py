"""The parts of small trainings, for a reader to put together.

A notebook hands them over, so that what its reader is to change, and nothing else, is
written in its cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from perfkit.questions.shared.later import keras, tf
from perfkit.questions.shared.models import MODELS

_PICTURES, _CLASSES = 2048, 10
# So many are drawn and encoded; the rest are those again.
_DIFFERENT = 16
_SIDE, _SMALL = 224, 32
# Most sentences are short and a few are long: words of the longest, and the mean.
_SENTENCES, _LONGEST, _MEAN, _WORDS = 2048, 200, 30, 1000


def pictures() -> tf.data.Dataset:
    """A data set of JPEG files in memory, each with its label; none is decoded yet."""
    order = np.arange(_PICTURES) % _DIFFERENT
    files = tf.constant([smooth_jpeg(seed, _SIDE) for seed in range(_DIFFERENT)])
    labels = order % _CLASSES
    return tf.data.Dataset.from_tensor_slices((tf.gather(files, order), labels))


def smooth_jpeg(seed: int, side: int) -> bytes:
    """Encode smooth noise, which takes about as long to decode as a photograph."""
    rough = np.random.default_rng(seed).random((side // 16, side // 16, 3))
    smooth = tf.image.resize(255 * rough, (side, side), method="bicubic")
    picture = tf.cast(tf.clip_by_value(smooth, 0, 255), tf.uint8)
    encoded: bytes = tf.io.encode_jpeg(picture, quality=95).numpy()
    return encoded


def decode(file: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Decode one picture, make it small, and mirror half of them."""
    picture = tf.image.resize(tf.io.decode_jpeg(file, channels=3), (_SMALL, _SMALL))
    return tf.image.random_flip_left_right(picture) / 255, label


def decode_bytes(file: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Decode one picture and make it small; its pixels stay bytes."""
    picture = tf.image.resize(tf.io.decode_jpeg(file, channels=3), (_SMALL, _SMALL))
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
    layers = [
        keras.Input((None,), dtype="int64"),
        keras.layers.Embedding(_WORDS, 64),
        keras.layers.Conv1D(128, 5, padding="same", activation="relu"),
        keras.layers.GlobalMaxPooling1D(),
        keras.layers.Dense(2),
    ]
    return _compiled(keras.Sequential(layers))


def classifier() -> keras.Model:
    """A small dense network for what ``models.learnable`` gives, compiled."""
    return _compiled(MODELS["dense"].build())


def network() -> keras.Model:
    """A small convolutional network, compiled."""
    layers = [
        keras.Input((_SMALL, _SMALL, 3)),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(_CLASSES),
    ]
    return _compiled(keras.Sequential(layers))


def _compiled(model: keras.Model) -> keras.Model:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    return model
