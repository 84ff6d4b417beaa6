"""What the trainings of `12_claims` are made of: data, layers and how pictures load."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers


def pictures():
    """Return 2,048 JPEG files in memory, each with its label; none is decoded yet."""
    order = np.arange(2048) % 16
    files = tf.constant([jpeg(seed) for seed in range(16)])
    return tf.data.Dataset.from_tensor_slices((tf.gather(files, order), order % 10))


def jpeg(seed):
    """Encode smooth noise, which takes about as long to decode as a photograph."""
    rough = np.random.default_rng(seed).random((14, 14, 3))
    smooth = tf.image.resize(255 * rough, (224, 224), method="bicubic")
    picture = tf.cast(tf.clip_by_value(smooth, 0, 255), tf.uint8)
    return tf.io.encode_jpeg(picture, quality=95).numpy()


def decode(file, label):
    """Decode one picture, make it small, and mirror half of them."""
    picture = tf.image.resize(tf.io.decode_jpeg(file, channels=3), (32, 32))
    return tf.image.random_flip_left_right(picture) / 255, label


def decode_bytes(file, label):
    """Decode one picture and make it small; its pixels stay bytes."""
    picture = tf.image.resize(tf.io.decode_jpeg(file, channels=3), (32, 32))
    return tf.cast(picture, tf.uint8), label


def as_floats(pixels, label):
    """Turn bytes, of one picture or of many, into numbers from 0 to 1."""
    return tf.cast(pixels, tf.float32) / 255, label


def network():
    """Return a small convolutional network for pictures, compiled."""
    flow = [
        keras.Input((32, 32, 3)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(10),
    ]
    return compiled(keras.Sequential(flow))


def vectors(count):
    """Return examples of 784 numbers, noise around a pattern for each label."""
    random = np.random.default_rng(0)
    labels = random.integers(10, size=count, dtype=np.int32)
    patterns = np.random.default_rng(1).standard_normal((10, 784))
    noise = random.standard_normal((count, 784))
    return (noise + patterns[labels]).astype(np.float32), labels


def dense():
    """Return a small dense network for vectors; nobody has compiled it."""
    hidden = layers.Dense(128, activation="relu")
    return keras.Sequential([keras.Input((784,)), hidden, layers.Dense(10)])


def classifier():
    """Return the same network, compiled."""
    return compiled(dense())


def sentences():
    """Return 2,048 sentences, numbers of words, each with its label; none is padded.

    Most are short and a few are long.
    """
    random = np.random.default_rng(0)
    words = random.integers(1, 1000, (2048, 200))
    lengths = np.clip(random.exponential(30, 2048).astype(int), 3, 200)
    labels = random.integers(2, size=2048)

    def cut(words, length, label):
        return words[:length], label

    return tf.data.Dataset.from_tensor_slices((words, lengths, labels)).map(cut)


def reader():
    """Return a small network that reads sentences of any length, compiled."""
    flow = [
        keras.Input((None,), dtype="int64"),
        layers.Embedding(1000, 64),
        layers.Conv1D(128, 5, padding="same", activation="relu"),
        layers.GlobalMaxPooling1D(),
        layers.Dense(2),
    ]
    return compiled(keras.Sequential(flow))


def compiled(model):
    """Compile a model whose last layer gives logits."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    return model
