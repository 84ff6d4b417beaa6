"""Train a classifier of cats and dogs on JPEG files, augmented by layers."""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from PIL import Image, ImageDraw
from tensorflow import keras
from tensorflow.keras import layers

AUTOTUNE = tf.data.AUTOTUNE
IMG_SIZE = (128, 128)
BATCH_SIZE = 32
CLASS_NAMES = ("cat", "dog")


def draw_pet(kind, rng):
    carpet = rng.integers(60, 140, (300, 360, 3), dtype=np.uint8)
    image = Image.fromarray(carpet)
    pen = ImageDraw.Draw(image)
    x, y = rng.integers(110, 250), rng.integers(110, 200)
    fur = tuple(rng.integers(80, 230, 3).tolist())
    pen.ellipse((x - 70, y - 60, x + 70, y + 60), fill=fur)
    for side in (-1, 1):
        ear = x + side * 50
        if kind == "cat":
            pen.polygon([(ear - 20, y - 40), (ear, y - 95), (ear + 20, y - 40)], fur)
        else:
            pen.ellipse((ear - 18, y - 60, ear + 18, y + 30), fill=fur)
        pen.ellipse((x + side * 25 - 8, y - 18, x + side * 25 + 8, y - 2), "black")
    return image


def download(folder, per_class=300):
    rng = np.random.default_rng(8)
    for kind in CLASS_NAMES:
        (folder / kind).mkdir(parents=True)
        for number in range(per_class):
            draw_pet(kind, rng).save(folder / kind / f"{kind}.{number}.jpg")


def process_path(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, IMG_SIZE), label


def make_dataset(folder):
    paths = sorted(map(str, folder.glob("*/*.jpg")))
    labels = [CLASS_NAMES.index(pathlib.Path(p).parent.name) for p in paths]
    return (
        tf.data.Dataset.from_tensor_slices((paths, labels))
        .map(process_path, num_parallel_calls=AUTOTUNE)
        .cache()
        .shuffle(len(paths))
        .batch(BATCH_SIZE)
        .prefetch(AUTOTUNE)
    )


def make_model():
    augment = keras.Sequential(
        [layers.RandomFlip("horizontal"), layers.RandomBrightness(0.1)]
    )
    inputs = keras.Input(shape=(*IMG_SIZE, 3))
    x = layers.Rescaling(1.0 / 255)(augment(inputs))
    for filters in (32, 64, 96):
        x = layers.Conv2D(filters, 3, strides=2, padding="same")(x)
        x = layers.BatchNormalization()(x)
        x = layers.Activation("relu")(x)
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    outputs = layers.Dense(1)(layers.Dropout(0.25)(x))
    return keras.Model(inputs, outputs)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as tmp:
        data_dir = pathlib.Path(tmp) / "PetImages"
        download(data_dir)
        model = make_model()
        model.compile(
            optimizer=keras.optimizers.Adam(3e-4),
            loss=keras.losses.BinaryCrossentropy(from_logits=True),
            metrics=[keras.metrics.BinaryAccuracy(threshold=0.0, name="acc")],
        )
        model.fit(make_dataset(data_dir), epochs=25)
