"""Train a factorisation of who clicks on which advertisement."""

import argparse

import keras
import numpy as np
import pandas as pd
import tensorflow as tf
from keras import layers

FIELDS = {"user": 5000, "advert": 800, "site": 300, "hour": 24, "device": 6}


def simulate_log(rows, seed=17):
    """A log of what was shown to whom, and whether it was clicked."""
    rng = np.random.default_rng(seed)
    log = pd.DataFrame(
        {name: rng.integers(0, size, rows) for name, size in FIELDS.items()}
    )
    logit = np.full(rows, -2.0)
    for name, size in FIELDS.items():
        logit += rng.normal(0, 0.5, size)[log[name]]
    log["clicked"] = rng.random(rows) < 1 / (1 + np.exp(-logit))
    return log


def make_dataset(log, batch_size):
    """Batches of the log, cut once; their order is new in every epoch."""
    steps = len(log) // batch_size
    log = log.sample(frac=1, random_state=0)[: steps * batch_size]
    ids = log[list(FIELDS)].to_numpy("int32").reshape(steps, batch_size, -1)
    clicked = log["clicked"].to_numpy("float32").reshape(steps, batch_size)
    dataset = tf.data.Dataset.from_tensor_slices((ids, clicked))
    return dataset.shuffle(steps).prefetch(tf.data.AUTOTUNE)


def build_model(width):
    """First- and second-order terms of the fields, as in factorisation machines."""
    offsets = np.cumsum([0, *FIELDS.values()])
    ids = keras.Input((len(FIELDS),), dtype="int32")
    places = layers.Rescaling(1, offset=offsets[:-1], dtype="int32")(ids)
    linear = layers.Embedding(int(offsets[-1]), 1)(places)
    vectors = layers.Embedding(int(offsets[-1]), width)(places)
    deep = layers.Dense(32, activation="relu")(layers.Flatten()(vectors))
    score = layers.concatenate([layers.Flatten()(linear), deep])
    return keras.Model(ids, layers.Dense(1, activation="sigmoid")(score))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=30)
    args = parser.parse_args()

    train = make_dataset(simulate_log(args.rows), args.batch_size)
    model = build_model(args.width)
    model.compile(
        optimizer=keras.optimizers.SGD(0.1),
        loss="binary_crossentropy",
        steps_per_execution=32,
    )
    model.fit(train, epochs=args.epochs, verbose=2)


if __name__ == "__main__":
    main()
