# cause: none
"""Small diffusion model whose noise schedule, EMA and sampler live in one tf.Module.

Every training call runs a whole block of updates inside the graph; the sampler is
one tf.while_loop and is only run at the end.
"""
import time

import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(21)

SIDE = 24
BATCH = 64
BLOCK = 50
BLOCKS = 12
STEPS = 100


def blobs(count):
    rng = np.random.default_rng(4)
    axis = np.arange(SIDE, dtype="float32")
    centre = rng.uniform(6, SIDE - 6, (count, 2, 1, 1)).astype("float32")
    radius = rng.uniform(2, 5, (count, 1, 1)).astype("float32")
    dist = (axis[None, :, None] - centre[:, 0]) ** 2 + (axis[None, None] - centre[:, 1]) ** 2
    return (2.0 * np.exp(-dist / radius**2) - 1.0)[..., None].astype("float32")


def time_features(t):
    freqs = tf.exp(tf.linspace(0.0, np.log(1000.0).astype("float32"), 16))
    angle = t[:, None] * freqs[None] / STEPS
    return tf.concat([tf.sin(angle), tf.cos(angle)], axis=1)


def build_net():
    image = keras.Input((SIDE, SIDE, 1))
    when = keras.Input((32,))
    emb = layers.Dense(48, activation="silu")(when)
    x = layers.Conv2D(24, 3, padding="same")(image)
    skip = x
    x = layers.Conv2D(48, 3, strides=2, padding="same", activation="silu")(x)
    x = x + layers.Reshape((1, 1, 48))(emb)
    x = layers.GroupNormalization(8)(x)
    x = layers.Conv2D(48, 3, padding="same", activation="silu")(x)
    x = layers.UpSampling2D()(x)
    x = layers.Concatenate()([x, skip])
    x = layers.Conv2D(24, 3, padding="same", activation="silu")(x)
    return keras.Model([image, when], layers.Conv2D(1, 3, padding="same")(x))


class Diffusion(tf.Module):
    def __init__(self, stream):
        super().__init__()
        self.net = build_net()
        self.opt = keras.optimizers.AdamW(1e-3, use_ema=True, ema_momentum=0.995)
        self.opt.build(self.net.trainable_variables)
        beta = np.linspace(1e-3, 0.08, STEPS, dtype="float32")
        self.beta = tf.constant(beta)
        self.keep = tf.constant(np.cumprod(1.0 - beta).astype("float32"))
        self.stream = iter(stream)

    def noise_loss(self, x):
        t = tf.random.uniform((BATCH,), 0, STEPS, dtype=tf.int32)
        keep = tf.gather(self.keep, t)[:, None, None, None]
        eps = tf.random.normal(tf.shape(x))
        noisy = tf.sqrt(keep) * x + tf.sqrt(1.0 - keep) * eps
        guess = self.net([noisy, time_features(tf.cast(t, tf.float32))], training=True)
        return tf.reduce_mean(tf.square(guess - eps))

    @tf.function
    def train_block(self, stream):
        total = 0.0
        for _ in tf.range(BLOCK):
            x = next(stream)
            with tf.GradientTape() as tape:
                loss = self.noise_loss(x)
            weights = self.net.trainable_variables
            self.opt.apply_gradients(zip(tape.gradient(loss, weights), weights))
            total += loss
        return total / BLOCK

    @tf.function
    def sample(self, count):
        x = tf.random.normal((count, SIDE, SIDE, 1))
        for i in tf.range(STEPS):
            t = STEPS - 1 - i
            when = tf.fill((count,), tf.cast(t, tf.float32))
            eps = self.net([x, time_features(when)], training=False)
            b, k = self.beta[t], self.keep[t]
            x = (x - b / tf.sqrt(1.0 - k) * eps) / tf.sqrt(1.0 - b)
            if t > 0:
                x += tf.sqrt(b) * tf.random.normal(tf.shape(x))
        return x


def main():
    data = blobs(4096)
    stream = (
        tf.data.Dataset.from_tensor_slices(data)
        .shuffle(4096)
        .repeat()
        .batch(BATCH, drop_remainder=True)
        .prefetch(tf.data.AUTOTUNE)
    )
    ddpm = Diffusion(stream)
    for block in range(BLOCKS):
        start = time.time()
        loss = float(ddpm.train_block(ddpm.stream))
        print(f"block {block} loss {loss:.4f} {time.time() - start:.1f}s", flush=True)
    ddpm.opt.finalize_variable_values(ddpm.net.trainable_variables)
    pictures = ddpm.sample(16).numpy()
    print("sample mean", pictures.mean(), "data mean", data.mean())


if __name__ == "__main__":
    main()
