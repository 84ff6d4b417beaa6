# ecg_scan.py, fixed by hand: one scan over time for a whole batch
"""Find irregular beats in short pieces of an electrocardiogram."""

import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers

RATE = 100
SAMPLES = 3 * RATE
BATCH_SIZE = 32
EPOCHS = 14
SMOOTH = 0.04


def record(path, pieces=800):
    rng = np.random.default_rng(14)
    time = np.arange(SAMPLES) / RATE
    signals = np.empty((pieces, SAMPLES), "float32")
    labels = rng.integers(0, 2, pieces).astype("int32")
    for i in range(pieces):
        beats = np.arange(0.2, 3.4, rng.uniform(0.6, 1.0))
        if labels[i]:
            beats = beats + rng.normal(0, 0.12, beats.size)
        shape = np.exp(-(((time[:, None] - beats) / 0.02) ** 2)).sum(1)
        drift = np.sin(2 * np.pi * time * rng.uniform(0.1, 0.4) + rng.uniform(0, 6))
        signals[i] = shape + drift + rng.normal(0, 0.05, SAMPLES)
    np.savez(path, signals=signals, labels=labels)


def remove_drift(signals):
    """Take away the base line, an exponential mean of the samples so far."""

    def follow(base, sample):
        return base + SMOOTH * (sample - base)

    over_time = tf.transpose(signals)
    base = tf.scan(follow, over_time, initializer=over_time[0])
    return signals - tf.transpose(base)


def prepare(signals, labels):
    signals = remove_drift(signals)
    deviation = tf.math.reduce_std(signals, axis=1, keepdims=True)
    signals = signals / (deviation + 1e-6)
    return signals[..., None], labels


def load(path, part):
    with np.load(path) as arrays:
        signals, labels = arrays["signals"], arrays["labels"]
    chosen = slice(0, 640) if part == "train" else slice(640, None)
    data = tf.data.Dataset.from_tensor_slices((signals[chosen], labels[chosen]))
    if part == "train":
        data = data.shuffle(640)
    data = data.batch(BATCH_SIZE)
    data = data.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
    return data.prefetch(tf.data.AUTOTUNE)


class BeatNet(keras.Model):
    def __init__(self):
        super().__init__()
        self.stages = [
            layers.Conv1D(filters, 7, strides=3, activation="relu")
            for filters in (16, 32, 64)
        ]
        self.pool = layers.GlobalMaxPooling1D()
        self.drop = layers.Dropout(0.2)
        self.out = layers.Dense(1, activation="sigmoid")

    def call(self, x, training=False):
        for stage in self.stages:
            x = stage(x)
        return self.out(self.drop(self.pool(x), training=training))


def main():
    path = os.path.join(tempfile.mkdtemp(prefix="ecg-"), "pieces.npz")
    record(path)
    model = BeatNet()
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    model.fit(
        load(path, "train"),
        validation_data=load(path, "test"),
        epochs=EPOCHS,
        verbose=2,
    )


if __name__ == "__main__":
    main()
