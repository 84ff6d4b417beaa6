"""Train an LSTM that forecasts tomorrow's temperature from a week of weather."""

import os
import tempfile

import keras
import numpy as np
import pandas as pd
import tensorflow as tf
from keras import layers

PAST = 120
AHEAD = 24
BATCH_SIZE = 128
EPOCHS = 20


def write_weather(path, hours=60_000, seed=33):
    """Write the hourly log of a weather station."""
    rng = np.random.default_rng(seed)
    time = np.arange(hours)
    season = -np.cos(2 * np.pi * time / 8766)
    day = -np.cos(2 * np.pi * time / 24)
    fronts = pd.Series(rng.normal(size=hours)).ewm(span=60).mean().to_numpy() * 20
    table = pd.DataFrame(
        {
            "temperature": 9 + 9 * season + 4 * day + fronts,
            "pressure": 1013 - fronts + rng.normal(0, 1, hours),
            "humidity": 75 - 8 * day - 5 * season + rng.normal(0, 4, hours),
            "wind": rng.weibull(1.8, hours) * 4,
            "radiation": np.maximum(day + season, 0) * 300,
        }
    )
    table.round(3).to_csv(path, index_label="hour")


def load_weather():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weather.csv")
        write_weather(path)
        table = pd.read_csv(path, index_col="hour")
    return ((table - table.mean()) / table.std()).to_numpy("float32")


def make_dataset(weather, shuffle):
    dataset = keras.utils.timeseries_dataset_from_array(
        weather[:-AHEAD],
        weather[PAST + AHEAD - 1 :, 0],
        sequence_length=PAST,
        sequence_stride=3,
        batch_size=BATCH_SIZE,
        shuffle=shuffle,
    )
    return dataset.cache().prefetch(tf.data.AUTOTUNE)


weather = load_weather()
split = int(len(weather) * 0.85)
train = make_dataset(weather[:split], shuffle=True)
validation = make_dataset(weather[split:], shuffle=False)

inputs = keras.Input((PAST, weather.shape[1]))
x = layers.LSTM(64)(inputs)
outputs = layers.Dense(1)(x)
model = keras.Model(inputs, outputs)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse")
model.summary()

model.fit(
    train,
    epochs=EPOCHS,
    validation_data=validation,
    callbacks=[
        keras.callbacks.EarlyStopping(patience=5),
        keras.callbacks.ReduceLROnPlateau(patience=2),
    ],
)
