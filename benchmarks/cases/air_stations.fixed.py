# air_stations.py, fixed by hand: one backward pass for the sum of the losses
"""Forecast the air of ten stations of a city with one trunk and a head for each."""

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

STATIONS = 10
HOURS = 96
CHANNELS = 14


def measure(hours=5000, seed=21):
    """Weather and traffic of each hour, and what ten stations make of them."""
    rng = np.random.default_rng(seed)
    clock = np.arange(hours)
    slow = np.cumsum(rng.normal(0, 0.1, (hours, CHANNELS)), axis=0)
    slow -= 0.02 * np.arange(hours)[:, None] * slow[-1] / (0.02 * hours)
    daily = np.sin(2 * np.pi * clock[:, None] / 24 + rng.uniform(0, 6, CHANNELS))
    series = slow + daily + rng.normal(0, 0.3, (hours, CHANNELS))
    mix = rng.normal(0, 1, (CHANNELS, STATIONS)) / np.sqrt(CHANNELS)
    air = np.tanh(series @ mix) + rng.normal(0, 0.1, (hours, STATIONS))
    return series.astype("float32"), air.astype("float32")


def windows(series, air):
    starts = np.arange(len(series) - HOURS - 1)
    past = np.stack([series[start : start + HOURS] for start in starts])
    return past, air[starts + HOURS]


class StationModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.trunk = keras.Sequential(
            [
                layers.Conv1D(32, 5, padding="causal", activation="relu"),
                layers.Conv1D(32, 5, padding="causal", activation="relu"),
                layers.Conv1D(48, 5, strides=2, activation="relu"),
                layers.Conv1D(48, 5, strides=2, activation="relu"),
                layers.GlobalAveragePooling1D(),
            ]
        )
        self.heads = [
            keras.Sequential([layers.Dense(16, activation="relu"), layers.Dense(1)])
            for _ in range(STATIONS)
        ]
        self.loss_mean = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.loss_mean]

    def call(self, past, training=False):
        shared = self.trunk(past, training=training)
        return [head(shared, training=training) for head in self.heads]

    def train_step(self, data):
        past, air = data
        with tf.GradientTape() as tape:
            outputs = self(past, training=True)
            losses = []
            for station, output in enumerate(outputs):
                losses.append(tf.reduce_mean((output[:, 0] - air[:, station]) ** 2))
            total = tf.add_n(losses)
        variables = self.trainable_variables
        gradients = tape.gradient(total, variables)
        self.optimizer.apply_gradients(zip(gradients, variables))
        self.loss_mean.update_state(total / STATIONS)
        return {"loss": self.loss_mean.result()}

    def test_step(self, data):
        past, air = data
        guess = tf.concat(self(past, training=False), axis=1)
        self.loss_mean.update_state(tf.reduce_mean((guess - air) ** 2))
        return {"loss": self.loss_mean.result()}


def main():
    keras.utils.set_random_seed(21)
    past, air = windows(*measure())
    cut = int(0.9 * len(past))
    model = StationModel()
    model.compile(optimizer=keras.optimizers.Adam(1e-3))
    model.fit(
        past[:cut],
        air[:cut],
        batch_size=64,
        epochs=12,
        validation_data=(past[cut:], air[cut:]),
        verbose=2,
    )


if __name__ == "__main__":
    main()
