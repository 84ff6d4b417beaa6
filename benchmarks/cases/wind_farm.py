# cause: none
"""Forecast the output of a wind farm's turbines for the next day."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

TURBINES = 64
PAST = 96
AHEAD = 24
BATCH_SIZE = 64
HIDDEN = 512
STEPS = 6000


def measure(hours=6000, seed=8):
    """Wind that drifts over the farm, and what each turbine makes of it."""
    rng = np.random.default_rng(seed)
    time = np.arange(hours)[:, None]
    gusts = rng.normal(0, 1, (hours, TURBINES)) + rng.normal(0, 1, (hours, 1))
    wind = np.zeros_like(gusts)
    for hour in range(1, hours):
        wind[hour] = 0.95 * wind[hour - 1] + 0.3 * gusts[hour]
    wind += 8 + 2 * np.sin(2 * np.pi * (time / 24 + rng.uniform(0, 0.1, TURBINES)))
    power = np.clip((wind - 3) / 9, 0, 1) ** 3
    return (power + rng.normal(0, 0.01, power.shape)).astype("float32")


class Windows:
    """Batches of past and coming hours from random places of a long record."""

    def __init__(self, power, first, last, seed=0):
        self.power = power
        self.first, self.last = first, last - PAST - AHEAD
        self.rng = np.random.default_rng(seed)
        self.offsets = np.arange(PAST + AHEAD)

    def draw(self, size=BATCH_SIZE):
        starts = self.rng.integers(self.first, self.last, size)
        cut = self.power[starts[:, None] + self.offsets]
        return cut[:, :PAST], cut[:, PAST:]


class Mixer(layers.Layer):
    """Mixes along the hours, then across the turbines."""

    def __init__(self, hidden, **kwargs):
        super().__init__(**kwargs)
        self.norms = [layers.LayerNormalization() for _ in range(2)]
        self.along = [layers.Dense(hidden, activation="relu"), layers.Dense(PAST)]
        self.across = [layers.Dense(hidden, activation="relu"), layers.Dense(TURBINES)]

    def call(self, x):
        y = tf.transpose(self.norms[0](x), [0, 2, 1])
        for dense in self.along:
            y = dense(y)
        x = x + tf.transpose(y, [0, 2, 1])
        y = self.norms[1](x)
        for dense in self.across:
            y = dense(y)
        return x + y


def forecaster():
    inputs = keras.Input((PAST, TURBINES))
    x = inputs
    for _ in range(3):
        x = Mixer(HIDDEN)(x)
    x = layers.Permute((2, 1))(x)
    x = layers.Dense(AHEAD)(x)
    return keras.Model(inputs, layers.Permute((2, 1))(x))


def persistence(past, coming):
    return float(np.mean(np.abs(past[:, -AHEAD:] - coming)))


def main():
    keras.utils.set_random_seed(8)
    power = measure()
    train = Windows(power, 0, 5000)
    test = Windows(power, 5000, 6000, seed=1).draw(256)
    model = forecaster()
    model.compile(optimizer=keras.optimizers.Adam(5e-4), loss="mae", metrics=["mse"])
    print(f"yesterday again: {persistence(*test):.4f}")
    recent = []
    for step in range(1, STEPS + 1):
        logs = model.train_on_batch(*train.draw(), return_dict=True)
        recent.append(float(logs["loss"]))
        if step % 50 == 0:
            print(f"step {step}: {np.mean(recent[-50:]):.4f}", flush=True)
        if step % 500 == 0:
            past, coming = test
            made = model.predict(past, verbose=0)
            print(f"  test: {np.mean(np.abs(made - coming)):.4f}")
            model.reset_metrics()


if __name__ == "__main__":
    main()
