# cause: none
"""Recognise humpback whales by their flukes: features first, then fine tuning."""

import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIDE, WHALES = 64, 12
BATCH_SIZE = 32
HEAD_EPOCHS, TUNE_EPOCHS = 30, 60
AUTOTUNE = tf.data.AUTOTUNE


def photograph(count, whales, seed):
    """Flukes whose notch, pigment and trailing edge belong to the animal."""
    rng = np.random.default_rng(seed)
    whale = rng.integers(whales, size=count)
    marks = np.random.default_rng(99).uniform(-1, 1, (whales, 6))[whale]
    yy, xx = np.mgrid[:SIDE, :SIDE] / SIDE - 0.5
    reach = np.abs(xx)[None]
    edge = 0.12 + 0.1 * marks[:, 0, None, None] * np.cos(14 * reach)
    tail = (np.abs(yy)[None] < edge) & (reach < 0.42)
    pattern = np.sin(
        20 * marks[:, 1, None, None] * xx + 25 * marks[:, 2, None, None] * yy
    )
    sea = 0.3 + 0.05 * rng.standard_normal((count, SIDE, SIDE))
    grey = np.where(tail, 0.6 + 0.3 * pattern, sea)
    pictures = np.stack([grey, grey * 0.95, grey * 1.05], axis=-1)
    pictures += rng.normal(0, 0.05, pictures.shape)
    return pictures.astype("float32"), whale.astype("int32")


def pretrained(path):
    base = keras.Sequential([layers.Input((SIDE, SIDE, 3))], name="base")
    for filters in (32, 64, 96, 128):
        base.add(layers.Conv2D(filters, 3, padding="same", use_bias=False))
        base.add(layers.BatchNormalization())
        base.add(layers.ReLU())
        base.add(layers.MaxPooling2D())
    base.add(layers.GlobalAveragePooling2D())
    model = keras.Sequential([base, layers.Dense(30, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(*photograph(128, 30, seed=1), batch_size=32, epochs=1, verbose=2)
    base.save(path)


def augment(pictures, whales):
    pictures = tf.image.random_flip_left_right(pictures)
    pictures = tf.image.random_brightness(pictures, 0.1)
    return pictures, whales


def train_head(base, pictures, whales):
    base.trainable = False
    features = base.predict(pictures, batch_size=64, verbose=0)
    head = keras.Sequential(
        [
            layers.Input((features.shape[1],)),
            layers.Dropout(0.3),
            layers.Dense(WHALES, activation="softmax"),
        ],
        name="head",
    )
    head.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    head.fit(features, whales, batch_size=256, epochs=HEAD_EPOCHS, verbose=0)
    return head


class Report(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch % 20 == 19:
            print(f"batch {batch + 1}: loss {logs['loss']:.4f}", flush=True)


def main():
    keras.utils.set_random_seed(6)
    path = os.path.join(tempfile.mkdtemp(prefix="flukes_"), "base.keras")
    pretrained(path)
    base = keras.models.load_model(path)
    pictures, whales = photograph(2560, WHALES, seed=2)
    test = photograph(192, WHALES, seed=3)
    head = train_head(base, pictures, whales)

    base.trainable = True
    inputs = keras.Input((SIDE, SIDE, 3))
    model = keras.Model(inputs, head(base(inputs, training=False)))
    model.compile(
        optimizer=keras.optimizers.Adam(1e-4, clipnorm=1.0),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    data = tf.data.Dataset.from_tensor_slices((pictures, whales)).shuffle(1024)
    data = data.batch(BATCH_SIZE, drop_remainder=True)
    data = data.map(augment, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
    callbacks = [
        Report(),
        keras.callbacks.EarlyStopping(patience=20, restore_best_weights=True),
    ]
    model.fit(
        data, validation_data=test, epochs=TUNE_EPOCHS, callbacks=callbacks, verbose=2
    )


if __name__ == "__main__":
    main()
