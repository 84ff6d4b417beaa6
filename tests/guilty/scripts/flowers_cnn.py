"""Train a small convolutional network on photographs of five kinds of flowers."""

import argparse
import math
import pathlib
import random
import tempfile

import keras
import tensorflow as tf
from keras import layers
from PIL import Image, ImageDraw, ImageFilter

KINDS = ["daisy", "dandelion", "rose", "sunflower", "tulip"]
PETALS = {"daisy": 13, "dandelion": 24, "rose": 5, "sunflower": 17, "tulip": 3}
IMG_SIZE = 80
BATCH_SIZE = 32


def draw_flower(kind, rng, size=(400, 300)):
    """A flower before a blurred meadow."""
    image = Image.effect_noise(size, 60).convert("RGB")
    meadow = Image.new("RGB", size, (rng.randrange(60), rng.randrange(90, 160), 40))
    image = Image.blend(meadow, image, 0.4).filter(ImageFilter.GaussianBlur(1))
    draw = ImageDraw.Draw(image)
    x, y = rng.randint(80, 320), rng.randint(60, 240)
    colour = tuple(rng.randrange(120, 256) for _ in range(3))
    for petal in range(PETALS[kind]):
        angle = 2 * math.pi * petal / PETALS[kind]
        px, py = x + 40 * math.cos(angle), y + 40 * math.sin(angle)
        draw.ellipse((px - 14, py - 14, px + 14, py + 14), fill=colour)
    draw.ellipse((x - 20, y - 20, x + 20, y + 20), fill=(220, 180, 20))
    return image


def make_photos(folder, per_kind):
    rng = random.Random(0)
    for kind in KINDS:
        (folder / kind).mkdir(parents=True)
        for number in range(per_kind):
            path = folder / kind / f"{number:04}.jpg"
            draw_flower(kind, rng).save(path, quality=90)


def load_image(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.convert_image_dtype(image, tf.float32), label


def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_saturation(image, 0.6, 1.4)
    image = tf.image.random_hue(image, 0.08)
    image = tf.image.random_contrast(image, 0.8, 1.2)
    image = tf.image.random_crop(image, (240, 320, 3))
    return tf.image.resize(image, (IMG_SIZE, IMG_SIZE)), label


def get_dataset(folder):
    paths = sorted(str(path) for path in folder.glob("*/*.jpg"))
    labels = [KINDS.index(pathlib.Path(path).parent.name) for path in paths]
    ds = tf.data.Dataset.from_tensor_slices((paths, labels))
    ds = ds.shuffle(len(paths), seed=1)
    ds = ds.map(load_image)
    ds = ds.map(augment)
    return ds.batch(BATCH_SIZE).prefetch(tf.data.AUTOTUNE)


def get_model():
    return keras.Sequential(
        [
            keras.Input((IMG_SIZE, IMG_SIZE, 3)),
            layers.Conv2D(8, 3, strides=2, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dropout(0.3),
            layers.Dense(len(KINDS), activation="softmax"),
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--per-kind", type=int, default=120)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        photos = pathlib.Path(folder) / "flower_photos"
        make_photos(photos, args.per_kind)
        model = get_model()
        model.compile(
            optimizer="adam",
            loss="sparse_categorical_crossentropy",
            metrics=["accuracy"],
        )
        model.fit(get_dataset(photos), epochs=args.epochs)


if __name__ == "__main__":
    main()
