"""Number plates on disk and as arrays."""

import os
import string
import tempfile

import numpy as np
import tensorflow as tf
from PIL import Image, ImageDraw, ImageFont

LETTERS = string.digits + string.ascii_uppercase
LENGTH = 7
HEIGHT, WIDTH = 32, 128
BATCH = 32


def print_plates(count, seed=5):
    """Photograph `count` plates: PNG files named NUMBER_TEXT.png in a new folder."""
    rng = np.random.default_rng(seed)
    folder = tempfile.mkdtemp(prefix="plates_")
    font = ImageFont.load_default(size=22)
    for number in range(count):
        text = "".join(rng.choice(list(LETTERS), LENGTH))
        plate = Image.new("L", (WIDTH, HEIGHT), int(rng.integers(170, 240)))
        pen = ImageDraw.Draw(plate)
        x = int(rng.integers(2, 8))
        for letter in text:
            pen.text((x, int(rng.integers(1, 6))), letter, font=font, fill=int(rng.integers(0, 70)))
            x += 17
        noise = rng.normal(0, 12, (HEIGHT, WIDTH))
        plate = np.clip(np.asarray(plate) + noise, 0, 255).astype("uint8")
        Image.fromarray(plate).save(os.path.join(folder, f"{number:06d}_{text}.png"))
    return folder


def load(folder):
    """All plates of a folder (a few thousand are a few MB): pictures and letter numbers."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".png"))
    pictures = np.stack([np.asarray(Image.open(os.path.join(folder, name))) for name in names])
    texts = [name.split("_")[1].split(".")[0] for name in names]
    numbers = np.array([[LETTERS.index(letter) for letter in text] for text in texts])
    return (pictures[..., None] / 255.0).astype("float32"), numbers.astype("int32")


def batches(pictures, texts, shuffle):
    data = tf.data.Dataset.from_tensor_slices((pictures, texts))
    if shuffle:
        data = data.shuffle(len(pictures), seed=1)
    return data.batch(BATCH).prefetch(tf.data.AUTOTUNE)
