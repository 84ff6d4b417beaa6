# cause: none, this training is healthy
# fix: none
# expect: nothing to gain by a fix; nothing here is to be called a defect
# form: functions, own loop over arrays in memory, tf.function step with a signature,
#       denoising diffusion
# report: none
# lines: none
"""Learn to draw height maps out of noise (denoising diffusion)."""

import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIZE, LEVELS = 32, 200
BATCH_SIZE = 64
EPOCHS = 100


def load_terrain(count=2560, seed=40):
    """Height maps with rough and smooth hills, from -1 to 1."""
    rng = np.random.default_rng(seed)
    far = np.hypot(np.fft.fftfreq(SIZE)[:, None], np.fft.rfftfreq(SIZE)[None])
    far[0, 0] = 1.0
    rough = rng.uniform(1.6, 2.6, (count, 1, 1))
    waves = rng.normal(0, 1, (2, count, SIZE, SIZE // 2 + 1))
    maps = np.fft.irfft2((waves[0] + 1j * waves[1]) * far**-rough, (SIZE, SIZE))
    maps -= maps.mean(axis=(1, 2), keepdims=True)
    maps /= np.abs(maps).max(axis=(1, 2), keepdims=True)
    return maps.astype("float32")[..., None]


def make_model():
    """Guesses the noise in a map at one of the noise levels."""
    noisy = keras.Input((SIZE, SIZE, 1))
    level = keras.Input((), dtype="int32")
    shift = layers.Reshape((1, 1, 32))(layers.Embedding(LEVELS, 32)(level))
    x = layers.Conv2D(32, 3, padding="same")(noisy)
    x = layers.Activation("relu")(layers.Add()([x, shift]))
    wide = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    x = layers.Conv2D(64, 3, 2, padding="same", activation="relu")(wide)
    x = layers.Conv2D(64, 3, padding="same", activation="relu")(x)
    x = layers.Conv2DTranspose(32, 2, 2, activation="relu")(x)
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(layers.Add()([x, wide]))
    return keras.Model([noisy, level], layers.Conv2D(1, 3, padding="same")(x))


keras.utils.set_random_seed(40)
terrain = load_terrain()
keep = tf.constant(np.cumprod(1 - np.linspace(1e-4, 0.04, LEVELS)), tf.float32)
model = make_model()
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(model.trainable_variables)


@tf.function(input_signature=[tf.TensorSpec((BATCH_SIZE, SIZE, SIZE, 1), tf.float32)])
def step(maps):
    level = tf.random.uniform((BATCH_SIZE,), 0, LEVELS, tf.int32)
    share = tf.gather(keep, level)[:, None, None, None]
    noise = tf.random.normal(maps.shape)
    noisy = tf.sqrt(share) * maps + tf.sqrt(1 - share) * noise
    with tf.GradientTape() as tape:
        guess = model([noisy, level], training=True)
        loss = tf.reduce_mean(tf.square(noise - guess))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


rng = np.random.default_rng(41)
for epoch in range(EPOCHS):
    began = time.perf_counter()
    order = rng.permutation(len(terrain)).reshape(-1, BATCH_SIZE)
    losses = [step(tf.constant(terrain[rows])) for rows in order]
    took = (time.perf_counter() - began) / len(order)
    loss = float(tf.reduce_mean(losses))
    print(f"epoch {epoch + 1:3d}: {loss:.4f}, {1000 * took:.0f} ms a step", flush=True)
