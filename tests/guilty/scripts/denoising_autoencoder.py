"""Train a convolutional autoencoder that takes the noise out of scanned pages."""

import numpy as np
import tensorflow as tf
from PIL import Image, ImageDraw
from tensorflow.keras import layers
from tensorflow.keras.models import Model

# The loss went to NaN with the first learning rate.
tf.debugging.enable_check_numerics()

PATCH = 48
BATCH_SIZE = 32
WORDS = ["brown", "dog", "fox", "jumps", "lazy", "quick", "seven", "the", "wizards"]


def render_pages(count, rng, size=384):
    """White pages full of words, as grey values from 0 to 1."""
    for _ in range(count):
        page = Image.new("L", (size, size), 255)
        draw = ImageDraw.Draw(page)
        for line in range(8, size - 8, 14):
            text = " ".join(rng.choice(WORDS, 12))
            draw.text((8, line), text, fill=int(rng.integers(80)))
        yield np.asarray(page, np.float32) / 255


def cut(page):
    side = page.shape[0] // PATCH
    patches = page.reshape(side, PATCH, side, PATCH).swapaxes(1, 2)
    return patches.reshape(-1, PATCH, PATCH, 1)


def noise(array, rng):
    stain = rng.normal(0.0, 0.3, array.shape).astype(np.float32)
    return np.clip(array + stain, 0.0, 1.0)


def build_autoencoder():
    inputs = layers.Input((PATCH, PATCH, 1))
    x = inputs
    for _ in range(2):
        x = layers.Conv2D(8, 3, padding="same")(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
        x = layers.MaxPooling2D(2, padding="same")(x)
    for _ in range(2):
        x = layers.Conv2DTranspose(8, 3, strides=2, padding="same")(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    x = layers.Conv2D(1, 3, activation="sigmoid", padding="same")(x)
    autoencoder = Model(inputs, x)
    autoencoder.compile(optimizer="adam", loss="binary_crossentropy")
    return autoencoder


def main():
    rng = np.random.default_rng(3)
    clean = np.concatenate([cut(page) for page in render_pages(60, rng)])
    noisy = noise(clean, rng)
    autoencoder = build_autoencoder()
    autoencoder.summary()
    autoencoder.fit(x=noisy, y=clean, epochs=50, batch_size=BATCH_SIZE, shuffle=True)


if __name__ == "__main__":
    main()
