# cause: a skip after the map that decodes: each epoch decodes 2,316 pictures to use 420
# report: https://github.com/tensorflow/tensorflow/issues/44008
# lines: 59-62
"""Estimate the yield of a solar roof from the latest pictures of a sky camera."""

import pathlib
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from PIL import Image

PICTURES, RECENT, TESTED = 1200, 420, 84
SIDE = 64
BATCH_SIZE, EPOCHS = 16, 100
AUTOTUNE = tf.data.AUTOTUNE


def write_pictures(folder, seed=12):
    """One picture each ten minutes, in order of time, and what the roof gave then."""
    rng = np.random.default_rng(seed)
    cover = 0.5
    lines = []
    for number in range(PICTURES):
        cover = np.clip(cover + rng.normal(0, 0.06), 0.05, 0.95)
        clouds = rng.random((9, 12)) < cover
        grey = np.where(clouds, 215, 120)[..., None] + rng.integers(-20, 20, (9, 12, 3))
        grey[..., 2] = np.where(clouds, grey[..., 2], 235)
        small = Image.fromarray(np.clip(grey, 0, 255).astype("uint8"))
        name = f"{number:05d}.jpg"
        small.resize((480, 360), Image.Resampling.BICUBIC).save(folder / name, quality=92)
        lines.append(f"{name},{1 - 0.8 * cover + rng.normal(0, 0.02):.4f}")
    (folder / "yield.csv").write_text("\n".join(lines))


def read_index(folder):
    lines = (folder / "yield.csv").read_text().splitlines()
    names, values = zip(*(line.split(",") for line in lines))
    paths = [str(folder / name) for name in names]
    return paths, np.array(values, "float32")


def decode(path, value):
    picture = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    picture = tf.image.resize(picture, (SIDE, SIDE)) / 255.0
    return picture, value


def flip(pictures, values):
    return tf.image.random_flip_left_right(pictures), values


def split(folder):
    """The last pictures are for the test, those shortly before them for training."""
    paths, values = read_index(folder)
    pictures = tf.data.Dataset.from_tensor_slices((paths, values))
    pictures = pictures.map(decode, num_parallel_calls=AUTOTUNE)
    recent = pictures.skip(PICTURES - RECENT)
    train = recent.take(RECENT - TESTED)
    test = recent.skip(RECENT - TESTED)
    train = train.shuffle(RECENT).batch(BATCH_SIZE).map(flip, num_parallel_calls=AUTOTUNE)
    return train.prefetch(AUTOTUNE), test.batch(BATCH_SIZE).prefetch(AUTOTUNE)


def build_model():
    inputs = keras.Input((SIDE, SIDE, 3))
    x = inputs
    for filters in (16, 32, 64):
        x = layers.Conv2D(filters, 3, strides=2, padding="same")(x)
        x = layers.BatchNormalization()(x)
        x = layers.Activation("swish")(x)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dropout(0.2)(x)
    return keras.Model(inputs, layers.Dense(1)(x))


def main():
    keras.utils.set_random_seed(4)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_pictures(folder)
        train, test = split(folder)
        model = build_model()
        model.compile(
            optimizer=keras.optimizers.Adam(1e-3), loss="huber", metrics=["mae"]
        )
        best = folder / "best.weights.h5"
        keep = keras.callbacks.ModelCheckpoint(
            best, monitor="val_mae", save_best_only=True, save_weights_only=True
        )
        model.fit(
            train, validation_data=test, epochs=EPOCHS, callbacks=[keep], verbose=2
        )
        model.load_weights(best)
        print(model.evaluate(test, verbose=0, return_dict=True))


if __name__ == "__main__":
    main()
