"""Train a small network that predicts which customers of a phone company leave."""

import argparse
import os
import tempfile

import keras
import numpy as np
import pandas as pd

NUMERIC = ["tenure", "monthly_charges", "total_charges", "calls", "data_gb", "age"]
CATEGORICAL = {
    "contract": ["month", "year", "two years"],
    "internet": ["none", "dsl", "fibre"],
    "payment": ["card", "transfer", "cheque", "cash"],
}


def write_csv(path, rows, seed=0):
    """Write a table of customers of which about a quarter leave."""
    rng = np.random.default_rng(seed)
    tenure = rng.integers(1, 73, rows)
    monthly = rng.normal(65, 25, rows).clip(18, 130)
    table = pd.DataFrame(
        {
            "tenure": tenure,
            "monthly_charges": monthly.round(2),
            "total_charges": (tenure * monthly * rng.normal(1, 0.05, rows)).round(2),
            "calls": rng.poisson(1.5, rows),
            "data_gb": rng.gamma(2.0, 6.0, rows).round(1),
            "age": rng.integers(18, 90, rows),
        }
    )
    for name, values in CATEGORICAL.items():
        table[name] = rng.choice(values, rows)
    logit = 0.03 * (monthly - 65) - 0.05 * tenure + 0.5 * table["calls"]
    logit += np.where(table["contract"] == "month", 0.8, -0.9)
    table["churn"] = (rng.random(rows) < 1 / (1 + np.exp(-logit))).astype(int)
    table.to_csv(path, index=False)


def load(path):
    """Read the table, scale its numbers and encode its categories."""
    table = pd.read_csv(path, keep_default_na=False)
    labels = table.pop("churn").to_numpy("float32")
    table[NUMERIC] = (table[NUMERIC] - table[NUMERIC].mean()) / table[NUMERIC].std()
    table = pd.get_dummies(table, columns=list(CATEGORICAL), dtype="float32")
    features = table.to_numpy("float32")
    split = int(0.8 * len(features))
    return (features[:split], labels[:split]), (features[split:], labels[split:])


def build_model(features, units, dropout):
    model = keras.Sequential(
        [
            keras.Input((features,)),
            keras.layers.Dense(units, activation="relu"),
            keras.layers.Dropout(dropout),
            keras.layers.Dense(units, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="binary_crossentropy",
        metrics=["accuracy"],
    )
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--units", type=int, default=32)
    parser.add_argument("--dropout", type=float, default=0.2)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "customers.csv")
        write_csv(path, args.rows)
        (x_train, y_train), (x_test, y_test) = load(path)

    model = build_model(x_train.shape[1], args.units, args.dropout)
    model.summary()
    model.fit(
        x_train, y_train, batch_size=args.batch_size, epochs=args.epochs, verbose=2
    )
    loss, accuracy = model.evaluate(x_test, y_test, batch_size=1024, verbose=0)
    print(f"test loss {loss:.3f}, accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
