"""Teach a small network which kind of scene a photograph shows.

The course speeds this training up. `photos` makes it, and everything else is above.
"""

import os
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image
from tensorflow import keras

CACHE = Path(os.environ.get("PERFKIT_CACHE") or "~/.cache/perfkit").expanduser()
KINDS = ("boats", "bridges", "gardens", "markets", "mountains", "streets")


def make_photos(count=640):
    """Make the photographs, once, and return their folder."""
    if (CACHE / "photos").is_dir():
        return CACHE / "photos"
    random = np.random.default_rng(0)
    tints = random.uniform(-60, 60, (len(KINDS), 3))
    unfinished = CACHE / f".unfinished-photos-{os.getpid()}"
    for number in range(count):
        scene = 64 + tints[number % len(KINDS)]
        for detail, contrast in ((4, 90), (16, 60), (64, 30)):
            noise = random.integers(0, 256, (detail * 3 // 4, detail, 3), np.uint8)
            layer = Image.fromarray(noise).resize((256, 192), Image.Resampling.BICUBIC)
            scene = scene + contrast * (np.asarray(layer) / 255)
        file = unfinished / KINDS[number % len(KINDS)] / f"{number:03}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        pixels = scene.clip(0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(file, quality=90)
    return unfinished.rename(CACHE / "photos")


def files():
    """Return the path of each photograph with the number of its kind."""
    names = sorted(map(str, make_photos().glob("*/*.jpg")))
    labels = [KINDS.index(Path(name).parent.name) for name in names]
    return tf.data.Dataset.from_tensor_slices((names, labels))


def load(name, label):
    """Read, decode and shrink one photograph."""
    photo = tf.io.decode_jpeg(tf.io.read_file(name), channels=3)
    return tf.image.resize(photo, (30, 40)) / 255, label


def small_cnn():
    """Return a small convolutional network."""
    return keras.Sequential(
        [
            keras.Input((30, 40, 3)),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(len(KINDS), activation="softmax", dtype="float32"),
        ]
    )


class WeightLog(keras.callbacks.Callback):
    """Notes after each batch how large the weights are."""

    def on_train_begin(self, logs=None):
        self.sizes = []

    def on_train_batch_end(self, batch, logs=None):
        weights = self.model.get_weights()
        self.sizes.append([np.median(np.abs(w)) for w in weights])


def photos():
    """Return the model, its data and the arguments of `fit`."""
    data = files().shuffle(640).map(load).batch(8)
    model = small_cnn()
    model.compile("adam", "sparse_categorical_crossentropy")
    return model, data, {"callbacks": [WeightLog()], "epochs": 5, "verbose": 2}


if __name__ == "__main__":
    model, data, arguments = photos()
    model.fit(data, **arguments)
