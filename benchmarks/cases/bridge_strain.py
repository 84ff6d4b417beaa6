# cause: none
"""Forecast the strain in the cables of a bridge from traffic, wind and temperature."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import tensorflow as tf
from keras import layers

CHANNELS = ["strain", "traffic", "wind", "temperature", "hour_sin", "hour_cos"]
PAST, AHEAD, BATCH = 144, 12, 64
EPOCHS = 60


def write_table(path, rows=9000, seed=23):
    """Ten-minute means of two months, as the loggers on the bridge store them."""
    rng = np.random.default_rng(seed)
    time = np.arange(rows)
    day = 2 * np.pi * time / 144
    table = pd.DataFrame({"hour_sin": np.sin(day), "hour_cos": np.cos(day)})
    table["traffic"] = np.clip(np.sin(day - 1) + rng.normal(0, 0.3, rows), 0, None)
    table["wind"] = np.convolve(rng.normal(size=rows), np.ones(36) / 6, "same")
    table["temperature"] = 8 + 6 * np.sin(day - 2) + 0.2 * table["wind"].cumsum() / 50
    lagged = table["traffic"].rolling(6, min_periods=1).mean()
    table["strain"] = 40 * lagged + 3 * table["temperature"] + 5 * table["wind"] ** 2
    table["strain"] += rng.normal(0, 2, rows)
    table[CHANNELS].to_csv(path, index=False)


def read_windows(path):
    table = pd.read_csv(path)
    values = ((table - table.mean()) / table.std()).to_numpy("float32")
    view = np.lib.stride_tricks.sliding_window_view(values, PAST + AHEAD, axis=0)
    view = view.transpose(0, 2, 1)
    past = np.ascontiguousarray(view[:, :PAST])
    future = np.ascontiguousarray(view[:, PAST:, 0])
    cut = int(0.92 * len(past))
    return (past[:cut], future[:cut]), (past[cut + PAST :], future[cut + PAST :])


def add_noise(past, future):
    return past + tf.random.normal(tf.shape(past), stddev=0.02), future


def batches(windows, training):
    data = tf.data.Dataset.from_tensor_slices(windows)
    if training:
        data = data.shuffle(len(windows[0]))
    data = data.batch(BATCH, drop_remainder=training)
    if training:
        data = data.map(add_noise, num_parallel_calls=tf.data.AUTOTUNE)
    return data.prefetch(tf.data.AUTOTUNE)


def residual(x, filters, dilation):
    y = layers.Conv1D(
        filters, 5, padding="causal", dilation_rate=dilation, activation="relu"
    )(x)
    y = layers.Conv1D(filters, 5, padding="causal", activation="relu")(y)
    return layers.Add()([x, layers.Dropout(0.1)(y)])


def build_model():
    past = keras.Input((PAST, len(CHANNELS)))
    x = layers.Conv1D(64, 1)(past)
    for dilation in (1, 2, 4, 8):
        x = residual(x, 64, dilation)
    x = layers.Concatenate()([x[:, -1], layers.GlobalAveragePooling1D()(x)])
    return keras.Model(past, layers.Dense(AHEAD)(x))


class Report(keras.callbacks.Callback):
    """A line for every fifty batches, and the worst forecast horizon of each epoch."""

    def __init__(self, past, future):
        super().__init__()
        self.past, self.future = past, future

    def on_train_batch_end(self, batch, logs=None):
        if batch % 50 == 49:
            print(f"  batch {batch + 1}, loss {logs['loss']:.4f}")

    def on_epoch_end(self, epoch, logs=None):
        error = np.abs(self.model.predict_on_batch(self.past) - self.future)
        print(f"epoch {epoch + 1}: worst horizon {error.mean(axis=0).argmax() + 1}")


if __name__ == "__main__":
    keras.utils.set_random_seed(2)
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder) / "cables.csv")
        training, testing = read_windows(Path(folder) / "cables.csv")
        model = build_model()
        model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"])
        model.fit(
            batches(training, True),
            validation_data=batches(testing, False),
            epochs=EPOCHS,
            callbacks=[
                Report(testing[0][:64], testing[1][:64]),
                keras.callbacks.ModelCheckpoint(
                    str(Path(folder) / "best.keras"), save_best_only=True
                ),
            ],
            verbose=2,
        )
