"""Predict a household's use of electricity from a day of readings of its meter."""

import argparse
import glob
import os
import tempfile

import keras
import numpy as np
import pandas as pd
import tensorflow as tf

READINGS = 24
COLUMNS = [f"h{hour:02d}" for hour in range(READINGS)] + ["temperature", "weekday", "target"]


def write_meters(folder, files=4, rows=12000, seed=18):
    rng = np.random.default_rng(seed)
    shape = 1 + np.sin(np.linspace(0, 2 * np.pi, READINGS) - 2)
    for number in range(files):
        level = rng.gamma(2, 0.4, (rows, 1))
        days = level * shape + rng.normal(0, 0.1, (rows, READINGS))
        temperature = rng.normal(12, 8, rows)
        weekday = rng.integers(7, size=rows)
        target = days[:, 17:].mean(1) * (1 + 0.2 * (weekday > 4)) + 0.02 * (18 - temperature)
        table = pd.DataFrame(
            np.column_stack([days, temperature, weekday, target]), columns=COLUMNS
        )
        table.round(4).to_csv(os.path.join(folder, f"meters_{number}.csv"), index=False)


def parse_lines(lines):
    fields = tf.io.decode_csv(lines, record_defaults=[0.0] * len(COLUMNS))
    readings = tf.stack(fields[:READINGS], axis=-1)
    weekday = tf.one_hot(tf.cast(fields[-2], tf.int32), 7)
    weather = tf.expand_dims(fields[-3] / 10.0, -1)
    return tf.concat([readings, weather, weekday], axis=-1), fields[-1]


def read_meters(files, batch_size):
    dataset = tf.data.Dataset.from_tensor_slices(files)
    dataset = dataset.interleave(
        lambda name: tf.data.TextLineDataset(name).skip(1), cycle_length=4
    )
    dataset = dataset.shuffle(4000, seed=2)
    return dataset.batch(batch_size).map(parse_lines).prefetch(1)


def build_model():
    return keras.Sequential(
        [
            keras.layers.Input((READINGS + 8,)),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(1),
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", help="folder of CSV files; made if left out")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=128)
    args = parser.parse_args()
    if args.data is None:
        args.data = tempfile.mkdtemp()
        write_meters(args.data)
    files = sorted(glob.glob(os.path.join(args.data, "*.csv")))
    model = build_model()
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(
        read_meters(files[:-1], args.batch_size),
        validation_data=read_meters(files[-1:], args.batch_size),
        epochs=args.epochs,
        verbose=2,
    )
