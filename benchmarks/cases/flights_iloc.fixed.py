# flights_iloc.py, fixed by hand: columns become arrays once, batches index them
"""How late will a flight be?  Three folds, three models."""

import os
import tempfile

import numpy as np
import pandas as pd
from keras import Sequential, layers

NUMBERS = ["distance", "hour", "weekday", "seats", "wind", "visibility"]
CARRIERS = ["AL", "BQ", "CS", "DV", "EX"]
BATCH = 128


def make_csv(path, flights=18000):
    rng = np.random.default_rng(33)
    table = pd.DataFrame(
        {
            "carrier": rng.choice(CARRIERS, flights),
            "distance": rng.integers(120, 4000, flights),
            "hour": rng.integers(5, 24, flights),
            "weekday": rng.integers(0, 7, flights),
            "seats": rng.choice([72, 144, 180, 220], flights),
            "wind": rng.gamma(2, 6, flights).round(1),
            "visibility": rng.beta(5, 1, flights).round(2) * 10,
        }
    )
    late = table.wind * 0.8 + (10 - table.visibility) * 3 + (table.hour > 17) * 12
    table["delay"] = (late + rng.normal(0, 6, flights)).round()
    table.to_csv(path, index=False)


def batches(df, mean, std, rng):
    """Give batches of flights without end, in a new order in each round."""
    numbers = ((df[NUMBERS] - mean) / std).to_numpy("float32")
    carriers = df["carrier"].to_numpy()[:, None] == np.array(CARRIERS)
    features = np.hstack([numbers, carriers.astype("float32")])
    delays = (df["delay"] / 60).to_numpy("float32")
    while True:
        order = rng.permutation(len(df))
        for start in range(0, len(df) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            yield features[rows], delays[rows]


def build():
    model = Sequential(
        [
            layers.Input((len(NUMBERS) + len(CARRIERS),)),
            layers.Dense(64, activation="relu"),
            layers.Dropout(0.1),
            layers.Dense(64, activation="relu"),
            layers.Dense(1),
        ]
    )
    model.compile("adam", "mae")
    return model


csv_path = os.path.join(tempfile.mkdtemp(prefix="flights-"), "flights.csv")
make_csv(csv_path)
flights = pd.read_csv(csv_path)
rng = np.random.default_rng(5)
folds = rng.permutation(len(flights)) % 3
scores = []
for fold in range(3):
    train, test = flights[folds != fold], flights[folds == fold]
    mean, std = train[NUMBERS].mean(), train[NUMBERS].std()
    model = build()
    history = model.fit(
        batches(train, mean, std, rng),
        steps_per_epoch=len(train) // BATCH,
        validation_data=batches(test, mean, std, rng),
        validation_steps=len(test) // BATCH,
        epochs=7,
        verbose=2,
    )
    scores.append(min(history.history["val_loss"]))
    print(f"fold {fold}: off by {60 * scores[-1]:.1f} minutes")
print(f"all folds: {60 * np.mean(scores):.1f} minutes")
