"""Sort street scenes by weather, every epoch on a random part of the photographs."""

import argparse
import glob
import os
import tempfile

import numpy as np
import tensorflow as tf
from PIL import Image, ImageFilter

WEATHER = ("clear", "fog", "night", "rain")


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--photos", type=int, default=640)
    parser.add_argument("--steps-per-epoch", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--crop", type=int, default=112)
    return parser.parse_args()


def make_scene(weather, rng, width=640, height=480):
    scene = np.zeros((height, width, 3), np.float32)
    scene[: height // 2] = (120, 160, 220)
    scene[height // 2 :] = (90, 90, 95)
    for _ in range(20):
        x, w, h = rng.integers(0, width), rng.integers(20, 90), rng.integers(60, 200)
        scene[height // 2 - h : height // 2 + 20, x : x + w] = rng.uniform(40, 220, 3)
    scene += rng.normal(0, 14, scene.shape)
    if weather == "fog":
        scene = scene * 0.4 + 130
    elif weather == "night":
        scene *= 0.25
    image = Image.fromarray(scene.clip(0, 255).astype(np.uint8))
    return image.filter(ImageFilter.BoxBlur(3)) if weather == "rain" else image


def write_scenes(folder, count):
    rng = np.random.default_rng(5)
    for number in range(count):
        weather = WEATHER[number % len(WEATHER)]
        image = make_scene(weather, rng)
        image.save(os.path.join(folder, f"{number:05}_{weather}.jpg"), quality=92)


class SceneData:
    """The photographs of a folder as batches of crops and labels."""

    def __init__(self, folder, crop):
        self.paths = sorted(glob.glob(os.path.join(folder, "*.jpg")))
        names = [os.path.basename(p)[:-4].split("_")[1] for p in self.paths]
        self.labels = [WEATHER.index(name) for name in names]
        self.crop = crop

    def load(self, path, label):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        image = tf.image.resize(tf.cast(image, tf.float32), (192, 256))
        image = tf.image.random_crop(image, (self.crop, self.crop, 3))
        image = tf.image.random_flip_left_right(image)
        return image / 127.5 - 1.0, label

    def batches(self, batch_size, steps):
        dataset = tf.data.Dataset.from_tensor_slices((self.paths, self.labels))
        dataset = dataset.map(self.load, num_parallel_calls=tf.data.AUTOTUNE)
        dataset = dataset.shuffle(len(self.paths))
        dataset = dataset.take(steps * batch_size)
        return dataset.batch(batch_size).prefetch(tf.data.AUTOTUNE)


def separable(filters, strides=1):
    return tf.keras.layers.SeparableConv2D(
        filters, 3, strides=strides, padding="same", activation="relu"
    )


def build_model(crop):
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((crop, crop, 3)),
            tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            separable(32, strides=2),
            separable(32),
            separable(64, strides=2),
            separable(64),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(len(WEATHER)),
        ]
    )


def main():
    args = parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_scenes(folder, args.photos)
        data = SceneData(folder, args.crop)
        model = build_model(args.crop)
        model.compile(
            optimizer=tf.keras.optimizers.RMSprop(1e-3),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
        model.fit(
            data.batches(args.batch_size, args.steps_per_epoch), epochs=args.epochs
        )


if __name__ == "__main__":
    main()
