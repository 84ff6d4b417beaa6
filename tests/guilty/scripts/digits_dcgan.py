"""Train a DCGAN that draws digits, with a loop of gradient tapes."""

import time

import numpy as np
import tensorflow as tf
from tensorflow.keras import Sequential, layers, losses, optimizers

BUFFER_SIZE = 6000
BATCH_SIZE = 16
EPOCHS = 50
NOISE_DIM = 64

SEGMENTS = ("abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc")
PLACES = {
    "a": (slice(4, 6), slice(8, 20)),
    "b": (slice(4, 14), slice(18, 20)),
    "c": (slice(14, 24), slice(18, 20)),
    "d": (slice(22, 24), slice(8, 20)),
    "e": (slice(14, 24), slice(8, 10)),
    "f": (slice(4, 14), slice(8, 10)),
    "g": (slice(13, 15), slice(8, 20)),
}


def load_digits(count):
    """Digits of seven segments, moved and noisy, scaled to -1..1."""
    rng = np.random.default_rng(0)
    images = np.zeros((count, 28, 28, 1), np.float32)
    for image in images:
        for segment in SEGMENTS[rng.integers(len(SEGMENTS))]:
            image[PLACES[segment]] = rng.uniform(0.7, 1)
        image[:] = np.roll(image, rng.integers(-3, 4, 2), (0, 1))
    images += rng.normal(0, 0.05, images.shape)
    return (images * 2 - 1).clip(-1, 1).astype(np.float32)


def make_generator_model():
    return Sequential(
        [
            layers.Input((NOISE_DIM,)),
            layers.Dense(7 * 7 * 32, use_bias=False),
            layers.BatchNormalization(),
            layers.LeakyReLU(),
            layers.Reshape((7, 7, 32)),
            layers.Conv2DTranspose(16, 5, strides=2, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.LeakyReLU(),
            layers.Conv2DTranspose(1, 5, strides=2, padding="same", activation="tanh"),
        ]
    )


def make_discriminator_model():
    return Sequential(
        [
            layers.Input((28, 28, 1)),
            layers.Conv2D(16, 5, strides=2, padding="same"),
            layers.LeakyReLU(),
            layers.Dropout(0.3),
            layers.Conv2D(32, 5, strides=2, padding="same"),
            layers.LeakyReLU(),
            layers.Dropout(0.3),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )


cross_entropy = losses.BinaryCrossentropy(from_logits=True)
generator = make_generator_model()
discriminator = make_discriminator_model()
generator_optimizer = optimizers.Adam(1e-4)
discriminator_optimizer = optimizers.Adam(1e-4)


def discriminator_loss(real_output, fake_output):
    real_loss = cross_entropy(tf.ones_like(real_output), real_output)
    fake_loss = cross_entropy(tf.zeros_like(fake_output), fake_output)
    return real_loss + fake_loss


def generator_loss(fake_output):
    return cross_entropy(tf.ones_like(fake_output), fake_output)


def train_step(images):
    noise = tf.random.normal([BATCH_SIZE, NOISE_DIM])

    with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
        generated_images = generator(noise, training=True)
        real_output = discriminator(images, training=True)
        fake_output = discriminator(generated_images, training=True)
        gen_loss = generator_loss(fake_output)
        disc_loss = discriminator_loss(real_output, fake_output)

    generator_optimizer.apply_gradients(
        zip(
            gen_tape.gradient(gen_loss, generator.trainable_variables),
            generator.trainable_variables,
            strict=True,
        )
    )
    discriminator_optimizer.apply_gradients(
        zip(
            disc_tape.gradient(disc_loss, discriminator.trainable_variables),
            discriminator.trainable_variables,
            strict=True,
        )
    )
    return gen_loss, disc_loss


def train(dataset, epochs):
    for epoch in range(epochs):
        start = time.time()
        for image_batch in dataset:
            gen_loss, disc_loss = train_step(image_batch)
        print(
            f"epoch {epoch + 1}: generator {float(gen_loss):.3f}, "
            f"discriminator {float(disc_loss):.3f}, {time.time() - start:.1f} s"
        )


train_images = load_digits(BUFFER_SIZE)
train_dataset = (
    tf.data.Dataset.from_tensor_slices(train_images)
    .shuffle(BUFFER_SIZE)
    .batch(BATCH_SIZE, drop_remainder=True)
    .prefetch(tf.data.AUTOTUNE)
)
train(train_dataset, EPOCHS)
