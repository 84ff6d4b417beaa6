# cause: a batch is put together row by row with df.iloc, which makes a pandas Series of
#        mixed types for every row
# fix: turn the columns into NumPy arrays once, index these with the batch's row numbers
# expect: 5 to 20 times faster a step
# form: a Python generator given to fit with steps_per_epoch, one fit for each fold
# report: https://github.com/pandas-dev/pandas/issues/13974
#         https://github.com/braindecode/braindecode/pull/89
# lines: 47-52
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
    while True:
        order = rng.permutation(len(df))
        for start in range(0, len(df) - BATCH + 1, BATCH):
            x, y = [], []
            for i in order[start : start + BATCH]:
                row = df.iloc[i]
                numbers = [(row[name] - mean[name]) / std[name] for name in NUMBERS]
                carrier = [float(row["carrier"] == name) for name in CARRIERS]
                x.append(numbers + carrier)
                y.append(row["delay"] / 60)
            yield np.array(x, "float32"), np.array(y, "float32")


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
