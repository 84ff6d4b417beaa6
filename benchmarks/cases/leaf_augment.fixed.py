# leaf_augment.py, fixed by hand: photographs are made small first
"""Recognise illnesses of leaves in photographs."""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from PIL import Image, ImageDraw

STATES = ["healthy", "rust", "mildew", "spot"]
SIDE = 96
BATCH_SIZE = 32
EPOCHS = 20
AUTOTUNE = tf.data.AUTOTUNE


def photograph(state, rng):
    photo = Image.effect_noise((800, 600), 30).convert("RGB")
    pen = ImageDraw.Draw(photo)
    green = tuple(int(c) for c in rng.integers((20, 110, 20), (70, 190, 70)))
    pen.ellipse((120, 80, 680, 520), fill=green)
    marks = {"healthy": None, "rust": "#a0521e", "mildew": "#e8e8e0", "spot": "#221a10"}
    if marks[state]:
        for _ in range(25):
            x, y = (int(c) for c in rng.integers((200, 150), (600, 450)))
            r = int(rng.integers(6, 30))
            pen.ellipse((x - r, y - r, x + r, y + r), fill=marks[state])
    return photo


def take_photographs(root, each=80):
    rng = np.random.default_rng(21)
    for state in STATES:
        folder = root / state
        folder.mkdir(parents=True)
        for number in range(each):
            photograph(state, rng).save(folder / f"IMG_{number:04d}.jpg", quality=88)


def load(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.convert_image_dtype(image, tf.float32), label


def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_hue(image, 0.05)
    image = tf.image.random_saturation(image, 0.7, 1.3)
    image = tf.image.random_contrast(image, 0.8, 1.2)
    return tf.clip_by_value(image, 0.0, 1.0), label


def resize(image, label):
    return tf.image.resize(image, [SIDE, SIDE]), label


def make_data(files, training):
    paths = [str(file) for file in files]
    labels = [STATES.index(file.parent.name) for file in files]
    data = tf.data.Dataset.from_tensor_slices((paths, labels))
    if training:
        data = data.shuffle(len(paths))
    data = data.map(load, num_parallel_calls=AUTOTUNE)
    data = data.map(resize, num_parallel_calls=AUTOTUNE)
    if training:
        data = data.map(augment, num_parallel_calls=AUTOTUNE)
    return data.batch(BATCH_SIZE).prefetch(AUTOTUNE)


def main():
    root = pathlib.Path(tempfile.mkdtemp(prefix="leaves_"))
    take_photographs(root)
    files = sorted(root.glob("*/*.jpg"))
    np.random.default_rng(0).shuffle(files)
    train, test = make_data(files[40:], True), make_data(files[:40], False)
    model = tf.keras.Sequential([tf.keras.layers.Input((SIDE, SIDE, 3))])
    for filters in (16, 32, 64):
        model.add(tf.keras.layers.Conv2D(filters, 3, strides=2, activation="relu"))
    model.add(tf.keras.layers.GlobalAveragePooling2D())
    model.add(tf.keras.layers.Dense(len(STATES), activation="softmax"))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(train, validation_data=test, epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
