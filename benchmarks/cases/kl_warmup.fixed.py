# kl_warmup.py, fixed by hand: the weight of the KL term is a tensor
"""Variational autoencoder of the spectra of minerals, with the KL term warmed up."""

import time

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

BANDS = 256
LATENT = 12
BATCH = 64
EPOCHS = 3
WARMUP_STEPS = 120


def make_spectra(count, seed):
    """A few absorption lines on a slope each, with the noise of the detector."""
    rng = np.random.default_rng(seed)
    place = np.linspace(0, 1, BANDS)
    spectra = 1 + rng.normal(0, 0.2, (count, 1)) * place
    for _ in range(5):
        center = rng.uniform(0, 1, (count, 1))
        width = rng.uniform(0.01, 0.06, (count, 1))
        depth = rng.uniform(0.05, 0.5, (count, 1))
        spectra -= depth * np.exp(-((place - center) ** 2) / (2 * width**2))
    spectra += rng.normal(0, 0.01, spectra.shape)
    return spectra.astype("float32")


def make_encoder():
    inputs = keras.Input((BANDS,))
    x = layers.Dense(128, activation="elu")(inputs)
    x = layers.Dense(64, activation="elu")(x)
    return keras.Model(inputs, [layers.Dense(LATENT)(x), layers.Dense(LATENT)(x)])


def make_decoder():
    inputs = keras.Input((LATENT,))
    x = layers.Dense(64, activation="elu")(inputs)
    x = layers.Dense(128, activation="elu")(x)
    return keras.Model(inputs, layers.Dense(BANDS)(x))


encoder, decoder = make_encoder(), make_decoder()
weights = encoder.trainable_variables + decoder.trainable_variables
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(weights)


@tf.function
def train_step(spectra, beta):
    with tf.GradientTape() as tape:
        mean, log_var = encoder(spectra, training=True)
        latent = mean + tf.exp(0.5 * log_var) * tf.random.normal(tf.shape(mean))
        rebuilt = decoder(latent, training=True)
        error = tf.reduce_sum((spectra - rebuilt) ** 2, axis=1)
        divergence = -0.5 * tf.reduce_sum(
            1 + log_var - mean**2 - tf.exp(log_var), axis=1
        )
        loss = tf.reduce_mean(error + beta * divergence)
    gradients = tape.gradient(loss, weights)
    optimizer.apply_gradients(zip(gradients, weights))
    return tf.reduce_mean(error), tf.reduce_mean(divergence)


spectra = make_spectra(40 * BATCH, seed=4)
dataset = tf.data.Dataset.from_tensor_slices(spectra).shuffle(3000)
dataset = dataset.batch(BATCH, drop_remainder=True).prefetch(2)

step = 0
for epoch in range(EPOCHS):
    start = time.time()
    errors, divergences = keras.metrics.Mean(), keras.metrics.Mean()
    for batch in dataset:
        beta = min(1.0, step / WARMUP_STEPS)
        error, divergence = train_step(batch, tf.constant(beta))
        errors.update_state(error)
        divergences.update_state(divergence)
        step += 1
    print(
        f"epoch {epoch + 1}: error {errors.result():.3f}, "
        f"KL {divergences.result():.3f}, beta {beta:.2f}, "
        f"{time.time() - start:.1f} s"
    )
