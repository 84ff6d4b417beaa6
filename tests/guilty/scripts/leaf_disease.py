"""Train a classifier of leaf diseases on augmented photographs, with a fixed seed."""

import os
import random
import tempfile

import numpy as np
import tensorflow as tf
from PIL import Image, ImageDraw
from tensorflow import keras


class CFG:
    seed = 2021
    n_images = 640
    n_train = 128
    image_size = 96
    batch_size = 32
    epochs = 50
    classes = ("healthy", "rust", "scab", "blight")


def seed_everything(seed):
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    keras.utils.set_random_seed(seed)


def draw_leaf(label, size=448):
    soil = np.random.randint(40, 90, (size, size, 3), dtype=np.uint8)
    leaf = Image.fromarray(soil)
    pen = ImageDraw.Draw(leaf)
    green = (30 + random.randrange(40), 110 + random.randrange(80), 40)
    pen.ellipse((60, 20 + random.randrange(60), 340, 380), fill=green)
    spots = {"healthy": None, "rust": "orange", "scab": "black", "blight": "beige"}
    if colour := spots[CFG.classes[label]]:
        for _ in range(25):
            x, y, r = random.randrange(90, 310), random.randrange(90, 350), 9
            pen.ellipse((x - r, y - r, x + r, y + r), fill=colour)
    return leaf


def create_data(folder):
    paths, labels = [], []
    for i in range(CFG.n_images):
        labels.append(i % len(CFG.classes))
        paths.append(os.path.join(folder, f"Train_{i}.jpg"))
        draw_leaf(labels[-1]).save(paths[-1], quality=85)
    return paths, labels


def decode_image(filename, label):
    bits = tf.io.read_file(filename)
    image = tf.image.decode_jpeg(bits, channels=3)
    image = tf.cast(image, tf.float32) / 255.0
    image = tf.image.resize(image, (CFG.image_size, CFG.image_size))
    return image, tf.one_hot(label, len(CFG.classes))


def data_augment(image, label):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_flip_up_down(image)
    image = tf.image.random_hue(image, 0.05)
    image = tf.image.random_saturation(image, 0.7, 1.3)
    image = tf.image.random_brightness(image, 0.2)
    return image, label


def get_train_dataset(paths, labels):
    return (
        tf.data.Dataset.from_tensor_slices((paths, labels))
        .map(decode_image, num_parallel_calls=tf.data.AUTOTUNE)
        .map(data_augment, num_parallel_calls=tf.data.AUTOTUNE)
        .repeat()
        .shuffle(128)
        .batch(CFG.batch_size)
        .prefetch(tf.data.AUTOTUNE)
    )


def get_valid_dataset(paths, labels):
    return (
        tf.data.Dataset.from_tensor_slices((paths, labels))
        .map(decode_image, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(CFG.batch_size)
        .prefetch(tf.data.AUTOTUNE)
    )


def build_model():
    return keras.Sequential(
        [
            keras.layers.Input((CFG.image_size, CFG.image_size, 3)),
            keras.layers.Conv2D(8, 5, strides=3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.GlobalMaxPooling2D(),
            keras.layers.Dense(len(CFG.classes), activation="softmax"),
        ]
    )


def scheduler(epoch):
    return 1e-3 * 0.9**epoch


seed_everything(CFG.seed)
with tempfile.TemporaryDirectory() as train_dir:
    paths, labels = create_data(train_dir)
    model = build_model()
    model.compile(
        optimizer="adam",
        loss="categorical_crossentropy",
        metrics=["categorical_accuracy"],
    )
    history = model.fit(
        get_train_dataset(paths[: CFG.n_train], labels[: CFG.n_train]),
        validation_data=get_valid_dataset(paths[CFG.n_train :], labels[CFG.n_train :]),
        epochs=CFG.epochs,
        steps_per_epoch=CFG.n_train // CFG.batch_size,
        callbacks=[keras.callbacks.LearningRateScheduler(scheduler)],
    )
