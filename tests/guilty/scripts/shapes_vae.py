"""Train a variational autoencoder on small sketches, with KL annealing."""

import argparse

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

IMAGE = 32


def sketches(count, seed=0):
    """Rectangles and discs at random places, one channel, 0..1."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:IMAGE, :IMAGE][:, None]
    y, x = rng.uniform(8, 24, (2, count, 1, 1))
    r = rng.uniform(3, 8, (count, 1, 1))
    dy, dx = abs(yy - y), abs(xx - x)
    disc = dy**2 + dx**2 < r**2
    box = np.maximum(dy, dx) < r
    kind = rng.random((count, 1, 1)) < 0.5
    return np.where(kind, disc, box)[..., None].astype("float32")


class Sampling(layers.Layer):
    """Uses (z_mean, z_log_var) to sample z."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(1337)

    def call(self, inputs):
        z_mean, z_log_var = inputs
        epsilon = keras.random.normal(ops.shape(z_mean), seed=self.seed_generator)
        return z_mean + ops.exp(0.5 * z_log_var) * epsilon


def build_encoder(latent_dim):
    inputs = keras.Input((IMAGE, IMAGE, 1))
    x = layers.Conv2D(8, 3, activation="relu", strides=2, padding="same")(inputs)
    x = layers.Conv2D(16, 3, activation="relu", strides=2, padding="same")(x)
    x = layers.Dense(32, activation="relu")(layers.Flatten()(x))
    z_mean = layers.Dense(latent_dim)(x)
    z_log_var = layers.Dense(latent_dim)(x)
    return keras.Model(inputs, [z_mean, z_log_var, Sampling()([z_mean, z_log_var])])


def build_decoder(latent_dim):
    return keras.Sequential(
        [
            keras.Input((latent_dim,)),
            layers.Dense(8 * 8 * 16, activation="relu"),
            layers.Reshape((8, 8, 16)),
            layers.Conv2DTranspose(16, 3, activation="relu", strides=2, padding="same"),
            layers.Conv2DTranspose(8, 3, activation="relu", strides=2, padding="same"),
            layers.Conv2D(1, 3, activation="sigmoid", padding="same"),
        ]
    )


class Trainer:
    """Trains encoder and decoder together; the weight of the KL term grows."""

    def __init__(self, latent_dim, warm_up):
        self.encoder = build_encoder(latent_dim)
        self.decoder = build_decoder(latent_dim)
        self.optimizer = keras.optimizers.Adam(1e-3)
        self.optimizer.build(self.weights)
        self.warm_up = warm_up

    @property
    def weights(self):
        return self.encoder.trainable_weights + self.decoder.trainable_weights

    @tf.function
    def train_step(self, images, beta):
        with tf.GradientTape() as tape:
            z_mean, z_log_var, z = self.encoder(images, training=True)
            rebuilt = self.decoder(z, training=True)
            error = keras.losses.binary_crossentropy(images, rebuilt)
            rebuild_loss = ops.mean(ops.sum(error, axis=(1, 2)))
            kl = -0.5 * (1 + z_log_var - ops.square(z_mean) - ops.exp(z_log_var))
            kl_loss = ops.mean(ops.sum(kl, axis=1))
            loss = rebuild_loss + beta * kl_loss
        gradients = tape.gradient(loss, self.weights)
        self.optimizer.apply_gradients(zip(gradients, self.weights, strict=True))
        return loss, kl_loss

    def train(self, dataset, epochs):
        step = 0
        for epoch in range(epochs):
            for images in dataset:
                beta = min(1.0, step / self.warm_up)
                loss, kl_loss = self.train_step(images, beta)
                step += 1
            print(f"epoch {epoch}: loss {loss:.2f}, kl {kl_loss:.2f}, beta {beta:.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--latent-dim", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--warm-up-epochs", type=int, default=60)
    args = parser.parse_args()

    images = sketches(12800)
    dataset = tf.data.Dataset.from_tensor_slices(images)
    dataset = dataset.shuffle(len(images)).batch(args.batch_size).prefetch(2)
    trainer = Trainer(args.latent_dim, args.warm_up_epochs * len(dataset))
    trainer.train(dataset, args.epochs)


if __name__ == "__main__":
    main()
