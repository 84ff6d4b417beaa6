"""Search for a network that foretells how many places a car park has in an hour."""

import pathlib
import tempfile

import keras
import numpy as np
import pandas as pd

CAR_PARKS, DAYS = 40, 90
TRIALS = 100
EPOCHS = 2
WINDOWS = (3, 6, 12, 24, 48, 72, 168, 336)


def write_counts(path, seed=5):
    """Hourly counts of free places with weather, one row for each car park and hour."""
    rng = np.random.default_rng(seed)
    hours = pd.date_range("2024-03-01", periods=24 * DAYS, freq="h")
    tables = []
    for number in range(CAR_PARKS):
        capacity = rng.integers(80, 600)
        busy = 0.5 - 0.4 * np.cos(2 * np.pi * (hours.hour - rng.integers(0, 4)) / 24)
        busy = busy * np.where(hours.dayofweek < 5, 1, 0.6)
        rain = rng.gamma(0.3, 2, len(hours))
        free = capacity * np.clip(1 - busy - 0.02 * rain, 0, 1)
        free = free + rng.normal(0, 0.04 * capacity, len(hours))
        table = pd.DataFrame(
            {"hour": hours, "car_park": f"P{number:02d}", "capacity": capacity}
        )
        table["zone"] = rng.choice(["centre", "station", "fair", "campus"])
        table["rain"] = rain.round(2)
        table["free"] = np.clip(free, 0, capacity).round()
        tables.append(table)
    pd.concat(tables).to_csv(path, index=False)


def prepare(path):
    """Shares of free places: the past of each car park, the calendar, the place."""
    table = pd.read_csv(path, parse_dates=["hour"])
    table["share"] = table["free"] / table["capacity"]
    shares = table.groupby("car_park")["share"]
    for window in WINDOWS:
        table[f"mean_{window}"] = shares.transform(lambda s: s.rolling(window).mean())
        table[f"median_{window}"] = shares.transform(
            lambda s: s.rolling(window).median()
        )
        table[f"low_{window}"] = shares.transform(
            lambda s: s.rolling(window).quantile(0.1)
        )
        table[f"high_{window}"] = shares.transform(
            lambda s: s.rolling(window).quantile(0.9)
        )
    for lag in (1, 2, 23, 167):
        table[f"lag_{lag}"] = shares.shift(lag)
    table["target"] = shares.shift(-1)
    clock = 2 * np.pi * table["hour"].dt.hour / 24
    table["sin"], table["cos"] = np.sin(clock), np.cos(clock)
    table["weekend"] = (table["hour"].dt.dayofweek > 4).astype("float32")
    table = pd.get_dummies(table, columns=["zone", "car_park"], dtype="float32")
    table = table.dropna()
    late = (table["hour"] >= "2024-05-15").to_numpy()
    targets = table["target"].to_numpy("float32")
    inputs = table.drop(columns=["hour", "free", "capacity", "target"])
    inputs = inputs.to_numpy("float32")
    inputs = (inputs - inputs[~late].mean(0)) / (inputs[~late].std(0) + 1e-6)
    return inputs[~late], targets[~late], inputs[late], targets[late]


def build_model(width, choice):
    model = keras.Sequential([keras.layers.Input((width,))])
    for _ in range(choice["layers"]):
        model.add(keras.layers.Dense(choice["units"], activation="relu"))
        model.add(keras.layers.Dropout(choice["dropout"]))
    model.add(keras.layers.Dense(1, activation="sigmoid"))
    optimizer = keras.optimizers.Adam(choice["learning_rate"])
    model.compile(optimizer=optimizer, loss="mse", metrics=["mae"])
    return model


def objective(choice, tables):
    keras.backend.clear_session()
    x, y, x_late, y_late = tables
    model = build_model(x.shape[1], choice)
    stop = keras.callbacks.EarlyStopping(monitor="val_mae", patience=2)
    history = model.fit(
        x,
        y,
        batch_size=choice["batch_size"],
        epochs=EPOCHS,
        validation_data=(x_late, y_late),
        callbacks=[stop],
        verbose=0,
    )
    return min(history.history["val_mae"])


def draw(rng):
    return {
        "layers": int(rng.integers(1, 4)),
        "units": int(rng.choice([32, 48, 64])),
        "dropout": float(rng.choice([0.0, 0.1, 0.2])),
        "learning_rate": float(10 ** rng.uniform(-4, -2)),
        "batch_size": int(rng.choice([1024, 2048])),
    }


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    path = pathlib.Path(tempfile.mkdtemp(prefix="parking_")) / "counts.csv"
    write_counts(path)
    tables = prepare(path)
    best = (np.inf, None)
    for number in range(TRIALS):
        choice = draw(rng)
        error = objective(choice, tables)
        best = min(best, (error, number))
        print(f"trial {number}: {error:.4f} with {choice}; best so far {best}")
