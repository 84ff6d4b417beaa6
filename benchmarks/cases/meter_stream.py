# cause: two moderate ones share the time: a generator gives single small rows, read and
#        converted in Python, which from_generator hands over one by one; and after each
#        epoch a callback calls the model for one held-out row at a time
# fix: read the table once into arrays, slice and batch these; predict all held-out rows
#      in one call
# expect: 1.5 to 2 times for either alone, 5 times or more for both
# form: tf.data from_generator over csv.reader, fit with a callback, functions
# report: https://github.com/tensorflow/tensorflow/issues/56258
#         https://github.com/tensorflow/tensorflow/issues/13101
#         https://github.com/keras-team/keras/issues/608
# lines: 46, 47, 51, 52, 70, 71
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
    with open(path, newline="") as file:
        reader = csv.reader(file)
        next(reader)
        for row in reader:
            days = np.array([float(value) for value in row[1:-1]], "float32")
            yield days / 100, int(row[-1])


def make_dataset(path):
    data = tf.data.Dataset.from_generator(
        lambda: read_meters(path),
        output_signature=(
            tf.TensorSpec((DAYS,), tf.float32),
            tf.TensorSpec((), tf.int32),
        ),
    )
    return data.shuffle(2000).batch(BATCH_SIZE).prefetch(tf.data.AUTOTUNE)


class WorstMeters(keras.callbacks.Callback):
    """Say how many of the hundred most suspicious meters were tampered with."""

    def __init__(self, path):
        super().__init__()
        self.rows = list(read_meters(path))

    def on_epoch_end(self, epoch, logs=None):
        scored = []
        for days, tampered in self.rows:
            score = self.model(days[None], training=False)
            scored.append((float(score[0, 0]), tampered))
        scored.sort(reverse=True)
        hits = sum(tampered for _, tampered in scored[:100])
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
