"""The parts of small trainings, for a reader to put together.

A notebook hands them over, so that what its reader is to change, and nothing else, is
written in its cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.experiments.shared.models import MODELS, learnable

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

_PICTURES, _CLASSES = 2048, 10
_DIGITS = 16_384
# So many are drawn and encoded; the rest are those again.
_DIFFERENT = 16
_SIDE, _SMALL = 224, 32


def pictures() -> tf.data.Dataset:
    """A data set of JPEG files in memory, each with its label; none is decoded yet."""
    import numpy as np
    import tensorflow as tf

    order = np.arange(_PICTURES) % _DIFFERENT
    files = tf.constant([_jpeg(seed) for seed in range(_DIFFERENT)])
    labels = order % _CLASSES
    return tf.data.Dataset.from_tensor_slices((tf.gather(files, order), labels))


def _jpeg(seed: int) -> bytes:
    import numpy as np
    import tensorflow as tf

    rough = np.random.default_rng(seed).random((14, 14, 3))
    smooth = tf.image.resize(255 * rough, (_SIDE, _SIDE), method="bicubic")
    picture = tf.cast(tf.clip_by_value(smooth, 0, 255), tf.uint8)
    encoded: bytes = tf.io.encode_jpeg(picture, quality=95).numpy()
    return encoded


def digits(batch: int) -> tf.data.Dataset:
    """Batches of 784 numbers and a label from 0 to 9, which can be learnt."""
    import tensorflow as tf

    numbers, labels = learnable(MODELS["dense"], _DIGITS, seed=0)
    return tf.data.Dataset.from_tensor_slices((numbers, labels)).batch(batch)


def decode(file: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Decode one picture, make it small, and mirror half of them."""
    import tensorflow as tf

    picture = tf.image.resize(tf.io.decode_jpeg(file, channels=3), (_SMALL, _SMALL))
    return tf.image.random_flip_left_right(picture) / 255, label


def network() -> keras.Model:
    """A small convolutional network, compiled."""
    import keras

    model = keras.Sequential(
        [
            keras.Input((_SMALL, _SMALL, 3)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(_CLASSES),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    return model
