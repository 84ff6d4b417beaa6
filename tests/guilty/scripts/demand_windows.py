"""Train a convolutional forecast of a region's demand for electricity."""

import keras
import numpy as np
import pandas as pd
from keras import layers

HISTORY = 24 * 7  # hours
HORIZON = 24
BATCH_SIZE = 64
EPOCHS = 30


def simulate_demand(years=6, seed=3):
    """Hourly demand with its days, weeks and seasons, and the weather behind it."""
    rng = np.random.default_rng(seed)
    index = pd.date_range("2015-01-01", periods=years * 8766, freq="h")
    hour, day = index.hour.to_numpy(), index.dayofyear.to_numpy()
    temperature = 12 - 10 * np.cos(2 * np.pi * day / 365)
    temperature += 4 * np.sin(2 * np.pi * (hour - 9) / 24)
    drift = rng.normal(0, 0.3, len(index))
    for t in range(1, len(index)):
        drift[t] += 0.98 * drift[t - 1]
    temperature += drift
    demand = 30 + 8 * np.sin(2 * np.pi * (hour - 7) / 24) + 0.5 * abs(temperature - 17)
    demand -= 5 * (index.dayofweek.to_numpy() >= 5)
    table = pd.DataFrame(index=index)
    table["demand"] = demand + rng.normal(0, 0.8, len(index))
    table["temperature"] = temperature
    table["wind"] = rng.weibull(2, len(index)) * 6
    table["hour_sin"], table["hour_cos"] = (
        np.sin(2 * np.pi * hour / 24),
        np.cos(2 * np.pi * hour / 24),
    )
    table["weekend"] = (index.dayofweek >= 5).astype(float)
    return table


class WindowSequence(keras.utils.PyDataset):
    """Batches of a week of history and the demand of the day that followed."""

    def __init__(self, table, batch_size, shuffle=True, **kwargs):
        super().__init__(**kwargs)
        self.table = table
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.starts = np.arange(len(table) - HISTORY - HORIZON)
        self.on_epoch_end()

    def __len__(self):
        return len(self.starts) // self.batch_size

    def __getitem__(self, index):
        batch = self.starts[index * self.batch_size : (index + 1) * self.batch_size]
        histories, futures = [], []
        for start in batch:
            now = start + HISTORY
            history = self.table.iloc[start:now]
            future = self.table["demand"].iloc[now : now + HORIZON]
            histories.append(history.to_numpy("float32"))
            futures.append(future.to_numpy("float32"))
        return np.stack(histories), np.stack(futures)

    def on_epoch_end(self):
        if self.shuffle:
            np.random.shuffle(self.starts)


def build_model(features):
    inputs = keras.Input((HISTORY, features))
    x = layers.Conv1D(16, 6, strides=3, activation="relu")(inputs)
    x = layers.Conv1D(32, 4, strides=2, activation="relu")(x)
    x = layers.Flatten()(x)
    x = layers.Dense(64, activation="relu")(x)
    return keras.Model(inputs, layers.Dense(HORIZON)(x))


def main():
    table = simulate_demand()
    table = (table - table.mean()) / table.std()
    last_year = len(table) - 8766
    train = WindowSequence(table.iloc[:last_year], BATCH_SIZE)
    model = build_model(table.shape[1])
    model.compile(optimizer="adam", loss="huber", metrics=["mae"])
    model.fit(train, epochs=EPOCHS)
    test = WindowSequence(table.iloc[last_year:], BATCH_SIZE, shuffle=False)
    model.evaluate(test)


if __name__ == "__main__":
    main()
