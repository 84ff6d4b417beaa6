# cause: none, this training is healthy
# fix: none
# expect: nothing to gain by a fix; the three rounds of the critic and its gradient
#         penalty are the method (WGAN-GP), and the convolutions take the time
# form: a GAN as a Model with train_step and two optimizers, compile overridden, fit
# report: none
# lines: none
"""Galaxies of 32 x 32 pixels from noise: a Wasserstein GAN with gradient penalty."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from PIL import Image

SIZE = 32
NOISE = 48


def photograph(count=3000, seed=9):
    """Spirals and ellipses at chance angles, with the noise of the camera."""
    rng = np.random.default_rng(seed)
    y, x = (np.mgrid[:SIZE, :SIZE].astype("float32") - SIZE / 2 + 0.5)[:, None]
    angle, squeeze, width, twist, arms = (
        rng.uniform(low, high, (count, 1, 1)).astype("float32")
        for low, high in ((0, 3.14), (0.4, 1), (3, 7), (-2, 2), (0, 0.9))
    )
    along = x * np.cos(angle) + y * np.sin(angle)
    across = (y * np.cos(angle) - x * np.sin(angle)) / squeeze
    radius = np.hypot(along, across)
    wave = 1 + arms * np.cos(2 * np.arctan2(across, along) + twist * radius / 3)
    light = np.exp(-radius / width) * wave / 1.9
    light += rng.normal(0, 0.02, light.shape)
    return (2 * np.clip(light, 0, 1) - 1).astype("float32")[..., None]


def make_critic():
    model = keras.Sequential([layers.Input((SIZE, SIZE, 1))], name="critic")
    for filters in (32, 64, 96):
        model.add(layers.Conv2D(filters, 5, strides=2, padding="same"))
        model.add(layers.LeakyReLU(0.2))
    model.add(layers.Flatten())
    model.add(layers.Dense(1))
    return model


def make_painter():
    model = keras.Sequential([layers.Input((NOISE,))], name="painter")
    model.add(layers.Dense(4 * 4 * 96, activation="relu"))
    model.add(layers.Reshape((4, 4, 96)))
    for filters in (64, 32, 32):
        model.add(layers.Conv2DTranspose(filters, 4, strides=2, padding="same"))
        model.add(layers.BatchNormalization())
        model.add(layers.ReLU())
    model.add(layers.Conv2D(1, 5, padding="same", activation="tanh"))
    return model


class WGAN(keras.Model):
    def __init__(self, critic_rounds=3, penalty=10.0):
        super().__init__()
        self.critic, self.painter = make_critic(), make_painter()
        self.critic_rounds = critic_rounds
        self.penalty = penalty
        self.distance = keras.metrics.Mean(name="distance")
        self.steepness = keras.metrics.Mean(name="steepness")

    def compile(self, critic_optimizer, painter_optimizer):
        super().compile()
        self.critic_optimizer = critic_optimizer
        self.painter_optimizer = painter_optimizer
        critic_optimizer.build(self.critic.trainable_variables)
        painter_optimizer.build(self.painter.trainable_variables)

    @property
    def metrics(self):
        return [self.distance, self.steepness]

    def call(self, noise):
        return self.painter(noise, training=False)

    def teach_critic(self, real):
        count = tf.shape(real)[0]
        fake = self.painter(tf.random.normal((count, NOISE)), training=True)
        between = real + tf.random.uniform((count, 1, 1, 1)) * (fake - real)
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(between)
                mixed = self.critic(between, training=True)
            slope = inner.gradient(mixed, between)
            norm = tf.sqrt(tf.reduce_sum(slope**2, axis=[1, 2, 3]) + 1e-12)
            scores = self.critic(tf.concat([real, fake], axis=0), training=True)
            good, bad = tf.split(scores, 2)
            distance = tf.reduce_mean(good) - tf.reduce_mean(bad)
            loss = self.penalty * tf.reduce_mean((norm - 1) ** 2) - distance
        weights = self.critic.trainable_variables
        self.critic_optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.distance.update_state(distance)
        self.steepness.update_state(norm)

    def train_step(self, real):
        for part in tf.split(real, self.critic_rounds):
            self.teach_critic(part)
        count = tf.shape(real)[0] // self.critic_rounds
        with tf.GradientTape() as tape:
            fake = self.painter(tf.random.normal((count, NOISE)), training=True)
            loss = -tf.reduce_mean(self.critic(fake, training=True))
        weights = self.painter.trainable_variables
        self.painter_optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return {metric.name: metric.result() for metric in self.metrics}


class Gallery(keras.callbacks.Callback):
    """Sixteen galaxies from the same noise, once an epoch."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.noise = tf.random.normal((16, NOISE))

    def on_epoch_end(self, epoch, logs=None):
        drawn = self.model(self.noise).numpy().reshape(4, 4, SIZE, SIZE)
        sheet = drawn.transpose(0, 2, 1, 3).reshape(4 * SIZE, 4 * SIZE)
        Image.fromarray(((sheet + 1) * 127.5).astype("uint8")).save(self.folder / f"{epoch:03d}.png")


def main():
    keras.utils.set_random_seed(9)
    model = WGAN()
    model.compile(
        critic_optimizer=keras.optimizers.Adam(2e-4, beta_1=0.0, beta_2=0.9),
        painter_optimizer=keras.optimizers.Adam(2e-4, beta_1=0.0, beta_2=0.9),
    )
    data = tf.data.Dataset.from_tensor_slices(photograph())
    data = data.shuffle(3000).batch(3 * 64, drop_remainder=True).prefetch(2)
    folder = Path(tempfile.mkdtemp(prefix="galaxies_"))
    model.fit(data, epochs=40, callbacks=[Gallery(folder)], verbose=2)


if __name__ == "__main__":
    main()
