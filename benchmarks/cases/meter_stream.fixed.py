# meter_stream.py, fixed by hand: tables become arrays once, one predict an epoch
"""Find water meters that were tampered with, from their daily readings."""

import csv
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers

DAYS = 28
BATCH_SIZE = 64
EPOCHS = 8


def write_meters(path, meters, seed):
    rng = np.random.default_rng(seed)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["meter", *[f"day{d}" for d in range(DAYS)], "tampered"])
        for meter in range(meters):
            use = rng.gamma(4, rng.uniform(20, 60), DAYS)
            tampered = int(rng.random() < 0.3)
            if tampered:
                use[rng.integers(7, 21) :] *= rng.uniform(0.3, 0.7)
            writer.writerow([meter, *use.round(1), tampered])


def read_meters(path):
    table = np.loadtxt(path, "float32", delimiter=",", skiprows=1)
    return table[:, 1:-1] / 100, table[:, -1].astype("int32")


def make_dataset(path):
    data = tf.data.Dataset.from_tensor_slices(read_meters(path))
    return data.shuffle(2000).batch(BATCH_SIZE).prefetch(tf.data.AUTOTUNE)


class WorstMeters(keras.callbacks.Callback):
    """Say how many of the hundred most suspicious meters were tampered with."""

    def __init__(self, path):
        super().__init__()
        self.days, self.tampered = read_meters(path)

    def on_epoch_end(self, epoch, logs=None):
        scores = self.model.predict(self.days, batch_size=256, verbose=0)[:, 0]
        worst = np.argsort(-scores)[:100]
        hits = self.tampered[worst].sum()
        print(f"epoch {epoch + 1}: {hits} of the worst 100 were tampered with")


def build_model():
    inputs = layers.Input((DAYS,))
    x = layers.Reshape((DAYS, 1))(inputs)
    x = layers.Conv1D(16, 7, activation="relu")(x)
    x = layers.Conv1D(16, 7, activation="relu")(x)
    x = layers.Flatten()(x)
    outputs = layers.Dense(1, activation="sigmoid")(x)
    return keras.Model(inputs, outputs)


folder = tempfile.mkdtemp(prefix="meters-")
train_path = os.path.join(folder, "train.csv")
check_path = os.path.join(folder, "check.csv")
write_meters(train_path, 12000, 1)
write_meters(check_path, 600, 2)
model = build_model()
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(
    make_dataset(train_path),
    epochs=EPOCHS,
    callbacks=[WorstMeters(check_path)],
    verbose=2,
)
