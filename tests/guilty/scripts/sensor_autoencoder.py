"""Train an autoencoder on a plant's sensors to tell the odd hours from the usual."""

import os
import tempfile

import keras
import numpy as np
import pandas as pd
from keras import layers

keras.backend.set_floatx("float64")

SENSORS = 64
WINDOW = 16
BATCH_SIZE = 512
EPOCHS = 40
FOLDER = tempfile.mkdtemp(prefix="plant-")


def record_sensors(path, hours=24_000, sources=9, seed=11):
    """Write the log of sensors that all follow a few hidden processes."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(hours, sources)).cumsum(axis=0)
    hidden -= pd.DataFrame(hidden).rolling(200, min_periods=1).mean().to_numpy()
    readings = np.tanh(hidden @ rng.normal(size=(sources, SENSORS)) / 10)
    readings += rng.normal(scale=0.05, size=readings.shape)
    columns = [f"sensor_{number:02d}" for number in range(SENSORS)]
    pd.DataFrame(readings, columns=columns).to_csv(path, index_label="hour")


def load_windows(path):
    """Read the log and cut it into windows, each one flat row of numbers."""
    table = pd.read_csv(path, index_col="hour")
    table = (table - table.mean()) / table.std()
    windows = np.lib.stride_tricks.sliding_window_view(table.to_numpy(), WINDOW, axis=0)
    return windows[::2].reshape(-1, SENSORS * WINDOW)


def build_autoencoder(width):
    inputs = keras.Input((width,))
    x = layers.Dense(768, activation="relu")(inputs)
    x = layers.Dense(256, activation="relu")(x)
    code = layers.Dense(32, name="code")(x)
    x = layers.Dense(256, activation="relu")(code)
    x = layers.Dense(768, activation="relu")(x)
    outputs = layers.Dense(width)(x)
    autoencoder = keras.Model(inputs, outputs, name="autoencoder")
    autoencoder.compile(optimizer="adam", loss="mse")
    return autoencoder


path = os.path.join(FOLDER, "sensors.csv")
record_sensors(path)
windows = load_windows(path)
train, test = windows[: len(windows) * 3 // 4], windows[len(windows) * 3 // 4 :]
print("windows:", train.shape, train.dtype)

autoencoder = build_autoencoder(train.shape[1])
autoencoder.fit(train, train, epochs=EPOCHS, batch_size=BATCH_SIZE)

errors = np.mean((autoencoder.predict(test, batch_size=2048) - test) ** 2, axis=1)
print("odd windows:", np.flatnonzero(errors > errors.mean() + 4 * errors.std()))
