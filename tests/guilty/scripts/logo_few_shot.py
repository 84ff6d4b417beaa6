"""Learn to tell six logos apart from forty photographs of each."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from PIL import Image, ImageDraw, ImageFilter

CLASSES = ["ring", "bar", "cross", "wedge", "frame", "dots"]
SHOTS = 40
SIZE = 32
BATCH = 16
STEPS = 20000


def draw_logo(name):
    logo = Image.new("RGB", (256, 256), "white")
    pen = ImageDraw.Draw(logo)
    if name == "ring":
        pen.ellipse((40, 40, 216, 216), outline="red", width=40)
    elif name == "bar":
        pen.rectangle((30, 100, 226, 156), fill="blue")
    elif name == "cross":
        pen.line((40, 40, 216, 216), fill="green", width=40)
        pen.line((216, 40, 40, 216), fill="green", width=40)
    elif name == "wedge":
        pen.polygon([(128, 30), (226, 226), (30, 226)], fill="orange")
    elif name == "frame":
        pen.rectangle((40, 40, 216, 216), outline="black", width=30)
    else:
        for x in (70, 128, 186):
            pen.ellipse((x - 20, 108, x + 20, 148), fill="purple")
    return logo


def take_photos(folder):
    rng = np.random.default_rng(11)
    for name in CLASSES:
        logo = draw_logo(name)
        (folder / name).mkdir()
        for shot in range(SHOTS):
            photo = logo.rotate(rng.uniform(-20, 20), fillcolor="white")
            photo = photo.filter(ImageFilter.GaussianBlur(rng.uniform(0, 3)))
            photo.save(folder / name / f"{shot}.png")


def load_photos(folder):
    images, labels = [], []
    for label, name in enumerate(CLASSES):
        for path in sorted((folder / name).glob("*.png")):
            with Image.open(path) as photo:
                small = photo.convert("RGB").resize((SIZE, SIZE))
            images.append(np.asarray(small, np.float32) / 255)
            labels.append(label)
    return np.stack(images), np.array(labels)


class LogoNet(keras.Model):
    def __init__(self):
        super().__init__()
        self.features = keras.Sequential(
            [
                layers.Conv2D(8, 3, strides=2, activation="relu"),
                layers.Conv2D(16, 3, strides=2, activation="relu"),
                layers.GlobalAveragePooling2D(),
            ]
        )
        self.head = layers.Dense(len(CLASSES))

    def call(self, inputs):
        return self.head(self.features(inputs))


with tempfile.TemporaryDirectory() as tmp:
    take_photos(Path(tmp))
    images, labels = load_photos(Path(tmp))

dataset = tf.data.Dataset.from_tensor_slices((images, labels))
dataset = dataset.shuffle(len(images)).batch(BATCH).prefetch(tf.data.AUTOTUNE)

model = LogoNet()
model.compile(
    optimizer=keras.optimizers.Adam(3e-4),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
for step in range(STEPS):
    batch_images, batch_labels = next(iter(dataset))
    logs = model.train_on_batch(batch_images, batch_labels, return_dict=True)
    if step % 500 == 0:
        print(f"step {step}: loss {logs['loss']:.3f}, accuracy {logs['accuracy']:.3f}")
