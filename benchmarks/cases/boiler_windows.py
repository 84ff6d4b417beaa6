# cause: windows are cut with Dataset.window: each window is a data set per column,
#        whose single values are read one by one and batched, again in every epoch
# fix: keep the table as one array, gather the windows of a whole batch by their starts
# expect: 3 to 10 times faster a step
# form: tf.data with a dictionary of columns, fit, no functions but one for the windows
# report: https://github.com/tensorflow/tensorflow/issues/43703
#         https://github.com/tensorflow/tensorflow/issues/44675
# lines: 51-56
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
    data = tf.data.Dataset.from_tensor_slices(dict(part))
    data = data.window(HISTORY + AHEAD, shift=1, drop_remainder=True)
    data = data.flat_map(
        lambda window: tf.data.Dataset.zip(
            {name: window[name].batch(HISTORY + AHEAD) for name in COLUMNS}
        )
    )

    def split(window):
        past = tf.stack([window[name][:HISTORY] for name in COLUMNS], axis=-1)
        return past, window["heat"][HISTORY:]

    data = data.map(split, num_parallel_calls=tf.data.AUTOTUNE)
    if shuffle:
        data = data.shuffle(2000)
    return data.batch(BATCH_SIZE).prefetch(tf.data.AUTOTUNE)


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
