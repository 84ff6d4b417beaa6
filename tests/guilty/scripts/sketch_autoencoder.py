"""Train a dense autoencoder on drawings of 28 by 28 pixels."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, models

CODE = 16
BATCH = 256
EPOCHS = 40


def drawings(count=40000):
    """Random walks of a pen, as grey values from 0 to 255."""
    rng = np.random.default_rng(1)
    steps = rng.integers(-1, 2, (2, 60, count)).cumsum(1) + 14
    y, x = steps.clip(0, 27)
    images = np.zeros((count, 28, 28), np.uint8)
    images[np.arange(count), y, x] = rng.integers(128, 256, (60, count))
    return images


def normalize(image):
    """Scale to 0..1 and make one row of it; it is its own target."""
    image = tf.reshape(tf.cast(image, tf.float32) / 255.0, [28 * 28])
    return image, image


class Autoencoder(models.Model):
    def __init__(self, latent_dim):
        super().__init__()
        self.encoder = tf.keras.Sequential(
            [layers.Dense(64, activation="relu"), layers.Dense(latent_dim)]
        )
        self.decoder = tf.keras.Sequential(
            [
                layers.Dense(64, activation="relu"),
                layers.Dense(28 * 28, activation="sigmoid"),
            ]
        )

    def call(self, x):
        return self.decoder(self.encoder(x))


if __name__ == "__main__":
    train = tf.data.Dataset.from_tensor_slices(drawings())
    train = train.shuffle(10000)
    train = train.map(normalize, num_parallel_calls=tf.data.AUTOTUNE)
    train = train.batch(BATCH)
    train = train.prefetch(tf.data.AUTOTUNE)

    autoencoder = Autoencoder(CODE)
    autoencoder.compile(optimizer="adam", loss="mse")
    autoencoder.fit(train, epochs=EPOCHS)
