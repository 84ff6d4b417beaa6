# boiler_windows.py, fixed by hand: the windows of a batch are gathered at once
"""Foresee the heat a district boiler must give in the next hours."""

import pathlib
import tempfile

import numpy as np
import pandas as pd
import tensorflow as tf

COLUMNS = ["outside", "flow", "return", "pressure", "heat"]
HISTORY = 36
AHEAD = 6
BATCH_SIZE = 64
EPOCHS = 18

# Three months of readings, one every five minutes, as the plant exports them.
folder = pathlib.Path(tempfile.mkdtemp(prefix="boiler_"))
rng = np.random.default_rng(2)
hours = np.arange(12000) / 12
outside = 6 + 5 * np.sin(hours / 24 * 2 * np.pi) + rng.normal(0, 0.3, hours.size)
heat = np.clip(40 - 2 * outside + 6 * np.sin(hours / 12 * 2 * np.pi), 0, None)
readings = pd.DataFrame(
    {
        "time": pd.date_range("2024-01-01", periods=hours.size, freq="5min"),
        "outside": outside,
        "flow": 55 + heat / 2 + rng.normal(0, 0.5, hours.size),
        "return": 40 + heat / 5 + rng.normal(0, 0.5, hours.size),
        "pressure": 1.6 + rng.normal(0, 0.02, hours.size),
        "heat": heat + rng.normal(0, 1, hours.size),
    }
)
readings.to_csv(folder / "readings.csv", index=False, float_format="%.3f")

table = pd.read_csv(folder / "readings.csv", parse_dates=["time"])
table = table[COLUMNS].astype("float32")
cut = int(len(table) * 0.85)
mean, std = table[:cut].mean(), table[:cut].std()
table = (table - mean) / std


def make_windows(part, shuffle):
    values = tf.constant(part[COLUMNS].to_numpy())

    def cut_out(starts):
        rows = tf.gather(values, starts[:, None] + tf.range(HISTORY + AHEAD)[None])
        return rows[:, :HISTORY], rows[:, HISTORY:, COLUMNS.index("heat")]

    starts = tf.range(len(part) - HISTORY - AHEAD + 1)
    data = tf.data.Dataset.from_tensor_slices(starts)
    if shuffle:
        data = data.shuffle(2000)
    data = data.batch(BATCH_SIZE)
    data = data.map(cut_out, num_parallel_calls=tf.data.AUTOTUNE)
    return data.prefetch(tf.data.AUTOTUNE)


train = make_windows(table[:cut], shuffle=True)
test = make_windows(table[cut:], shuffle=False)

model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((HISTORY, len(COLUMNS))),
        tf.keras.layers.Conv1D(32, 5, activation="relu"),
        tf.keras.layers.Conv1D(32, 5, strides=2, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(AHEAD),
    ]
)
model.compile(optimizer="adam", loss="mse", metrics=["mae"])
model.fit(train, validation_data=test, epochs=EPOCHS, verbose=2)
print("mean error in kW:", model.evaluate(test, verbose=0)[1] * std["heat"])
