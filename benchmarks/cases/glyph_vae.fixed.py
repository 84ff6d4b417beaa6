"""A variational autoencoder of glyphs; the weight of its KL term rises over the epochs."""

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

LATENT = 8
SIDE = 28


def glyphs(count=2048, seed=41):
    """Strokes between random points on a few fixed grids."""
    rng = np.random.default_rng(seed)
    pictures = np.zeros((count, SIDE, SIDE, 1), "float32")
    places = np.array([5, 13, 22])
    for picture in pictures:
        points = places[rng.integers(3, size=(4, 2))]
        for start, end in zip(points[:-1], points[1:]):
            for part in np.linspace(0, 1, 24):
                y, x = np.round(start + part * (end - start)).astype(int)
                picture[y : y + 2, x : x + 2] = 1
    return pictures


class VAE(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder = keras.Sequential(
            [
                layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
                layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
                layers.Flatten(),
                layers.Dense(2 * LATENT),
            ]
        )
        self.decoder = keras.Sequential(
            [
                layers.Dense(7 * 7 * 32, activation="relu"),
                layers.Reshape((7, 7, 32)),
                layers.Conv2DTranspose(16, 3, strides=2, padding="same", activation="relu"),
                layers.Conv2DTranspose(1, 3, strides=2, padding="same"),
            ]
        )

    def call(self, pictures):
        mean, log_var = tf.split(self.encoder(pictures), 2, axis=-1)
        code = mean + tf.exp(0.5 * log_var) * tf.random.normal(tf.shape(mean))
        return self.decoder(code), mean, log_var


vae = VAE()
optimizer = keras.optimizers.Adam(1e-3)


@tf.function
def train_step(pictures, beta):
    with tf.GradientTape() as tape:
        logits, mean, log_var = vae(pictures)
        errors = tf.nn.sigmoid_cross_entropy_with_logits(pictures, logits)
        rebuilt = tf.reduce_mean(tf.reduce_sum(errors, axis=(1, 2, 3)))
        divergence = -0.5 * tf.reduce_sum(1 + log_var - mean**2 - tf.exp(log_var), axis=1)
        loss = rebuilt + beta * tf.reduce_mean(divergence)
    gradients = tape.gradient(loss, vae.trainable_variables)
    optimizer.apply_gradients(zip(gradients, vae.trainable_variables))
    return rebuilt, tf.reduce_mean(divergence)


def train(epochs=70, warm_up=60, batch_size=128):
    data = glyphs()
    vae(data[:1])
    optimizer.build(vae.trainable_variables)
    dataset = tf.data.Dataset.from_tensor_slices(data).shuffle(len(data), seed=3)
    dataset = dataset.batch(batch_size, drop_remainder=True).prefetch(2)
    for epoch in range(epochs):
        beta = tf.constant(min(1.0, epoch / warm_up), tf.float32)
        totals = np.zeros(2)
        for pictures in dataset:
            totals += [float(part) for part in train_step(pictures, beta)]
        rebuilt, divergence = totals / (len(data) // batch_size)
        print(f"epoch {epoch}: beta {beta:.2f} rebuilt {rebuilt:.1f} divergence {divergence:.2f}")


if __name__ == "__main__":
    train()
