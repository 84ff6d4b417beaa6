"""Read the letters of small captchas; a demonstration shows what was learned so far."""

import os
import tempfile

import keras
import numpy as np
from keras import layers

LETTERS, LENGTH = 12, 4
HEIGHT, WIDTH = 24, 72


class KeepLatest(keras.callbacks.Callback):
    """Keeps the newest weights in a file, for the demonstration that reads them."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def on_epoch_end(self, epoch, logs=None):
        self.model.save_weights(self.path)


def letter_shapes(rng):
    shapes = rng.random((LETTERS, 6, 5)) < 0.5
    return np.kron(shapes, np.ones((2, 2))).astype("float32")


def captchas(count, shapes, seed):
    rng = np.random.default_rng(seed)
    texts = rng.integers(LETTERS, size=(count, LENGTH))
    pictures = rng.normal(0, 0.3, (count, HEIGHT, WIDTH, 1)).astype("float32")
    for picture, text in zip(pictures, texts):
        for place, letter in enumerate(text):
            y = rng.integers(2, HEIGHT - 14)
            x = 4 + place * 16 + rng.integers(0, 5)
            picture[y : y + 12, x : x + 10, 0] += shapes[letter]
        picture[rng.integers(HEIGHT)] += 0.7
    return pictures, texts


def build_reader():
    inputs = x = keras.Input((HEIGHT, WIDTH, 1))
    for filters in (16, 32):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Flatten()(x)
    x = layers.Dense(512, activation="relu")(x)
    x = layers.Dense(256, activation="relu")(x)
    x = layers.Dense(LENGTH * LETTERS)(x)
    x = layers.Reshape((LENGTH, LETTERS))(x)
    return keras.Model(inputs, layers.Softmax()(x))


def run():
    keras.utils.set_random_seed(9)
    shapes = letter_shapes(np.random.default_rng(70))
    x_train, y_train = captchas(2400, shapes, seed=71)
    x_test, y_test = captchas(400, shapes, seed=72)
    latest = os.path.join(tempfile.mkdtemp(), "latest.weights.h5")
    reader = build_reader()
    reader.compile(
        optimizer=keras.optimizers.Adam(7e-4),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    reader.fit(
        x_train,
        y_train,
        batch_size=16,
        epochs=9,
        callbacks=[KeepLatest(latest)],
        verbose=2,
    )
    print("letters read:", reader.evaluate(x_test, y_test, verbose=0)[1])


if __name__ == "__main__":
    run()
