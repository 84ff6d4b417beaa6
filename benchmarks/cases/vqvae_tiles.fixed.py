"""VQ-VAE on small texture tiles, codebook learned with the straight-through trick."""
import time

import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(3)

TILE = 32
CODE_DIM = 32
NUM_CODES = 512
BATCH = 32
EPOCHS = 6
TILES = 1280
BETA = 0.25


def make_tiles(n, seed=0):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:TILE, 0:TILE].astype("float32") / TILE
    out = np.empty((n, TILE, TILE, 3), "float32")
    for i in range(n):
        angle = rng.uniform(0, np.pi)
        freq = rng.uniform(2, 9)
        wave = np.sin(2 * np.pi * freq * (xx * np.cos(angle) + yy * np.sin(angle)))
        if rng.random() < 0.5:
            wave = np.sign(wave)
        colour_a, colour_b = rng.uniform(0, 1, (2, 3))
        mix = (wave[..., None] + 1) / 2
        out[i] = colour_a * mix + colour_b * (1 - mix)
    return out + rng.normal(0, 0.02, out.shape).astype("float32")


class Quantizer(layers.Layer):
    def __init__(self, num_codes, dim, **kwargs):
        super().__init__(**kwargs)
        self.num_codes = num_codes
        self.dim = dim

    def build(self, input_shape):
        self.codebook = self.add_weight(
            name="codebook",
            shape=(self.num_codes, self.dim),
            initializer=keras.initializers.RandomUniform(-0.3, 0.3),
        )

    def nearest(self, flat):
        dist = (
            tf.reduce_sum(tf.square(flat), axis=1, keepdims=True)
            - 2.0 * tf.matmul(flat, self.codebook, transpose_b=True)
            + tf.reduce_sum(tf.square(self.codebook), axis=1)
        )
        return tf.argmin(dist, axis=1)

    def call(self, z):
        flat = tf.reshape(z, (-1, self.dim))
        idx = self.nearest(flat)
        q = tf.reshape(tf.gather(self.codebook, idx), tf.shape(z))
        commit = tf.reduce_mean(tf.square(tf.stop_gradient(q) - z))
        book = tf.reduce_mean(tf.square(q - tf.stop_gradient(z)))
        self.add_loss(book + BETA * commit)
        return z + tf.stop_gradient(q - z), idx


def build_encoder():
    return keras.Sequential(
        [
            keras.Input((TILE, TILE, 3)),
            layers.Conv2D(32, 4, strides=2, padding="same", activation="relu"),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Conv2D(CODE_DIM, 1),
        ],
        name="encoder",
    )


def build_decoder():
    return keras.Sequential(
        [
            keras.Input((TILE // 2, TILE // 2, CODE_DIM)),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Conv2DTranspose(32, 4, strides=2, padding="same", activation="relu"),
            layers.Conv2D(3, 3, padding="same"),
        ],
        name="decoder",
    )


encoder, decoder = build_encoder(), build_decoder()
quantizer = Quantizer(NUM_CODES, CODE_DIM)
quantizer.build((None, None, None, CODE_DIM))
optimizer = keras.optimizers.Adam(5e-4)
variables = (
    encoder.trainable_variables
    + decoder.trainable_variables
    + quantizer.trainable_variables
)
optimizer.build(variables)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        z = encoder(x, training=True)
        q, idx = quantizer(z)
        recon = decoder(q, training=True)
        rec_loss = tf.reduce_mean(tf.square(recon - x)) / 0.05
        loss = rec_loss + tf.add_n(quantizer.losses)
    grads = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(grads, variables))
    used = tf.math.bincount(tf.cast(idx, tf.int32), minlength=NUM_CODES)
    return rec_loss, used


def main():
    tiles = make_tiles(TILES)
    ds = (
        tf.data.Dataset.from_tensor_slices(tiles)
        .shuffle(TILES)
        .batch(BATCH, drop_remainder=True)
        .prefetch(2)
    )
    for epoch in range(EPOCHS):
        start = time.time()
        total = tf.zeros(())
        counts = tf.zeros((NUM_CODES,), tf.int32)
        for step, batch in enumerate(ds, 1):
            loss, used = train_step(batch)
            total += loss
            counts += used
        p = counts.numpy() / counts.numpy().sum()
        perplexity = np.exp(-np.sum(p * np.log(p + 1e-10)))
        print(
            f"epoch {epoch} recon {float(total) / step:.4f} "
            f"perplexity {perplexity:.1f} {time.time() - start:.1f}s",
            flush=True,
        )


main()
