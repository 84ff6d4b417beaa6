"""Train a Wasserstein GAN that draws faces of 64 by 64 pixels."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

LATENT_DIM = 64
BATCH_SIZE = 32
EPOCHS = 100


def load_faces(count=1024, size=64):
    """Ovals with eyes and a mouth, scaled to -1..1."""
    rng = np.random.default_rng(4)
    yy, xx = np.mgrid[:size, :size].astype("float32")
    faces = np.empty((count, size, size, 3), "float32")
    for face in faces:
        cx, cy, r = rng.uniform(28, 36), rng.uniform(28, 36), rng.uniform(16, 24)
        face[:] = rng.uniform(-1, 0, 3)
        face[((xx - cx) / r) ** 2 + ((yy - cy) / (1.3 * r)) ** 2 < 1] = rng.random(3)
        for eye in (-0.4, 0.4):
            face[(xx - cx - eye * r) ** 2 + (yy - cy + 0.3 * r) ** 2 < 6] = -1
        face[(abs(xx - cx) < 0.4 * r) & (abs(yy - cy - 0.6 * r) < 2)] = (0.8, -0.8, 0)
    return faces


def get_discriminator_model():
    model = keras.Sequential([keras.Input((64, 64, 3))], name="discriminator")
    for filters in (32, 64, 128):
        model.add(layers.Conv2D(filters, 5, strides=2, padding="same"))
        model.add(layers.LeakyReLU(0.2))
    model.add(layers.Flatten())
    model.add(layers.Dense(1))
    return model


def get_generator_model():
    model = keras.Sequential([keras.Input((LATENT_DIM,))], name="generator")
    model.add(layers.Dense(8 * 8 * 128))
    model.add(layers.Reshape((8, 8, 128)))
    for filters in (64, 32, 16):
        model.add(layers.UpSampling2D())
        model.add(layers.Conv2D(filters, 3, padding="same", use_bias=False))
        model.add(layers.BatchNormalization())
        model.add(layers.LeakyReLU(0.2))
    model.add(layers.Conv2D(3, 3, padding="same", activation="tanh"))
    return model


class WGAN(keras.Model):
    def __init__(self, discriminator, generator, clip=0.03):
        super().__init__()
        self.discriminator = discriminator
        self.generator = generator
        self.clip = clip
        self.seed_generator = keras.random.SeedGenerator(1337)

    def compile(self, d_optimizer, g_optimizer, **kwargs):
        super().compile(**kwargs)
        self.d_optimizer = d_optimizer
        self.g_optimizer = g_optimizer

    def sample(self, count):
        return keras.random.normal((count, LATENT_DIM), seed=self.seed_generator)

    def train_step(self, real_images):
        batch_size = tf.shape(real_images)[0]
        weights = self.discriminator.trainable_weights
        fake_images = self.generator(self.sample(batch_size), training=True)
        with tf.GradientTape() as tape:
            fake = self.discriminator(fake_images, training=True)
            real = self.discriminator(real_images, training=True)
            d_loss = tf.reduce_mean(fake) - tf.reduce_mean(real)
        grads = tape.gradient(d_loss, weights)
        self.d_optimizer.apply_gradients(zip(grads, weights, strict=True))
        for weight in weights:
            weight.assign(tf.clip_by_value(weight, -self.clip, self.clip))

        weights = self.generator.trainable_weights
        with tf.GradientTape() as tape:
            fake_images = self.generator(self.sample(batch_size), training=True)
            g_loss = -tf.reduce_mean(self.discriminator(fake_images, training=True))
        grads = tape.gradient(g_loss, weights)
        self.g_optimizer.apply_gradients(zip(grads, weights, strict=True))
        return {"d_loss": d_loss, "g_loss": g_loss}


wgan = WGAN(get_discriminator_model(), get_generator_model())
wgan.compile(
    d_optimizer=keras.optimizers.RMSprop(5e-5),
    g_optimizer=keras.optimizers.RMSprop(5e-5),
)
wgan.fit(load_faces(), batch_size=BATCH_SIZE, epochs=EPOCHS)
