"""Train a U-Net that finds cells in microscope images, from PNG images and masks."""

import os
import tempfile

import numpy as np
import tensorflow as tf
from PIL import Image
from tensorflow import keras
from tensorflow.keras import layers

SEED = 42
IMG_HEIGHT = 64
IMG_WIDTH = 64
BATCH_SIZE = 16
EPOCHS = 100


def create_data(root, n_images=160, size=512):
    """Write images and masks as in the data set's own folders."""
    rng = np.random.default_rng(SEED)
    yy, xx = np.mgrid[:size, :size]
    for sub in ("images", "masks"):
        os.makedirs(os.path.join(root, sub))
    for i in range(n_images):
        mask = np.zeros((size, size), bool)
        for _ in range(rng.integers(6, 14)):
            y, x, r = rng.integers(0, size), rng.integers(0, size), rng.integers(15, 45)
            mask |= (yy - y) ** 2 + (xx - x) ** 2 < r * r
        noise = rng.integers(0, 90, (size, size, 3), dtype=np.uint8)
        image = noise + 130 * mask[..., None].astype(np.uint8)
        Image.fromarray(image).save(
            os.path.join(root, "images", f"{i}.png"), compress_level=1
        )
        Image.fromarray(mask.astype(np.uint8) * 255).save(
            os.path.join(root, "masks", f"{i}.png")
        )


def read_pair(image_path, mask_path):
    image = tf.io.decode_png(tf.io.read_file(image_path), channels=3)
    mask = tf.io.decode_png(tf.io.read_file(mask_path), channels=1)
    image = tf.image.resize(image, (IMG_HEIGHT, IMG_WIDTH)) / 255.0
    mask = tf.image.resize(mask, (IMG_HEIGHT, IMG_WIDTH), method="nearest")
    return image, tf.cast(mask > 127, tf.float32)


def flip(image, mask):
    if tf.random.uniform(()) > 0.5:
        image = tf.image.flip_left_right(image)
        mask = tf.image.flip_left_right(mask)
    return image, mask


def conv_block(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return x


def build_unet():
    inputs = keras.Input((IMG_HEIGHT, IMG_WIDTH, 3))
    skips, x = [], inputs
    for filters in (4, 8, 16):
        x = conv_block(x, filters)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = conv_block(x, 32)
    for filters, skip in zip((16, 8, 4), reversed(skips), strict=True):
        x = layers.Conv2DTranspose(filters, 2, strides=2)(x)
        x = conv_block(layers.concatenate([x, skip]), filters)
    outputs = layers.Conv2D(1, 1, activation="sigmoid")(x)
    return keras.Model(inputs, outputs, name="unet")


def dice_coef(y_true, y_pred):
    overlap = tf.reduce_sum(y_true * y_pred)
    return (2.0 * overlap + 1.0) / (tf.reduce_sum(y_true + y_pred) + 1.0)


with tempfile.TemporaryDirectory() as data_dir:
    create_data(data_dir)
    names = sorted(os.listdir(os.path.join(data_dir, "images")))
    image_paths = [os.path.join(data_dir, "images", name) for name in names]
    mask_paths = [os.path.join(data_dir, "masks", name) for name in names]

    train_ds = tf.data.Dataset.from_tensor_slices((image_paths, mask_paths))
    train_ds = train_ds.map(read_pair, num_parallel_calls=tf.data.AUTOTUNE)
    train_ds = train_ds.shuffle(len(names))
    train_ds = train_ds.map(flip, num_parallel_calls=tf.data.AUTOTUNE)
    train_ds = train_ds.batch(BATCH_SIZE).prefetch(tf.data.AUTOTUNE)

    model = build_unet()
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="binary_crossentropy",
        metrics=[dice_coef],
    )
    model.fit(train_ds, epochs=EPOCHS, verbose=2)
