# cause: the discriminator and the stacked model are compiled again in every iteration,
#        to freeze and to thaw, so that both steps are traced anew for each batch
# fix: compile each of them once, the stack while the discriminator is frozen; in the
#      loop only switch trainable, which counts when a step is first traced
# expect: 15 to 60 times faster an iteration
# form: a GAN in one class, train_on_batch in a loop of one's own over iterations
# report: https://github.com/keras-team/keras/issues/6457
#         https://github.com/osh/KerasGAN/issues/10
#         https://github.com/naokishibuya/deep-learning/issues/1
# lines: 87-89, 93, 102, 111
import os
import tempfile

import numpy as np
from PIL import Image
from tensorflow.keras.layers import (
    Conv2D,
    Conv2DTranspose,
    Dense,
    Dropout,
    Flatten,
    Input,
    LeakyReLU,
    Reshape,
)
from tensorflow.keras.models import Model, Sequential
from tensorflow.keras.optimizers import Adam

OUT = tempfile.mkdtemp(prefix="runes_")


def carve(n=6000, size=28, seed=4):
    """Pictures of runes: a stave and two twigs at chance heights and slopes."""
    rng = np.random.RandomState(seed)
    yy, xx = np.mgrid[0:size, 0:size].astype("float32")
    pictures = np.zeros((n, size, size), "float32")
    stave = rng.uniform(9, 17, n).astype("float32")
    for twig in range(3):
        x0 = stave
        y0 = rng.uniform(5, 20, n).astype("float32") if twig else np.full(n, 3, "float32")
        x1 = stave + (rng.choice([-8, 8], n) if twig else 0)
        y1 = y0 + (rng.uniform(-7, 7, n) if twig else 22)
        dx, dy = (x1 - x0)[:, None, None], (y1 - y0)[:, None, None]
        px, py = xx - x0[:, None, None], yy - y0[:, None, None]
        t = np.clip((px * dx + py * dy) / (dx**2 + dy**2), 0, 1)
        away = np.hypot(px - t * dx, py - t * dy)
        pictures = np.maximum(pictures, np.exp(-((away / 1.2) ** 2)))
    return (pictures * 2 - 1)[..., None].astype("float32")


class RuneGAN:
    def __init__(self):
        self.img_shape = (28, 28, 1)
        self.latent_dim = 64
        self.d_optimizer = Adam(0.0002, 0.5)
        self.g_optimizer = Adam(0.0002, 0.5)

        self.discriminator = self.build_discriminator()
        self.generator = self.build_generator()
        z = Input(shape=(self.latent_dim,))
        self.combined = Model(z, self.discriminator(self.generator(z)))

    def build_generator(self):
        model = Sequential(name="generator")
        model.add(Input(shape=(self.latent_dim,)))
        model.add(Dense(7 * 7 * 32))
        model.add(LeakyReLU(0.2))
        model.add(Reshape((7, 7, 32)))
        model.add(Conv2DTranspose(32, 4, strides=2, padding="same"))
        model.add(LeakyReLU(0.2))
        model.add(Conv2DTranspose(1, 4, strides=2, padding="same", activation="tanh"))
        return model

    def build_discriminator(self):
        model = Sequential(name="discriminator")
        model.add(Input(shape=self.img_shape))
        for filters in (24, 48):
            model.add(Conv2D(filters, 4, strides=2, padding="same"))
            model.add(LeakyReLU(0.2))
            model.add(Dropout(0.25))
        model.add(Flatten())
        model.add(Dense(1, activation="sigmoid"))
        return model

    def thaw(self):
        self.discriminator.trainable = True
        self.discriminator.compile(
            loss="binary_crossentropy", optimizer=self.d_optimizer, metrics=["accuracy"]
        )

    def freeze(self):
        self.discriminator.trainable = False
        self.combined.compile(loss="binary_crossentropy", optimizer=self.g_optimizer)

    def train(self, iterations, batch_size=64, sample_interval=200):
        X_train = carve()
        valid = np.ones((batch_size, 1))
        fake = np.zeros((batch_size, 1))

        for iteration in range(iterations):
            # ---- discriminator
            self.thaw()
            imgs = X_train[np.random.randint(0, len(X_train), batch_size)]
            noise = np.random.normal(0, 1, (batch_size, self.latent_dim))
            gen_imgs = self.generator.predict_on_batch(noise)
            d_loss_real = self.discriminator.train_on_batch(imgs, valid)
            d_loss_fake = self.discriminator.train_on_batch(gen_imgs, fake)
            d_loss = 0.5 * np.add(d_loss_real, d_loss_fake)

            # ---- generator, the discriminator must not learn here
            self.freeze()
            noise = np.random.normal(0, 1, (batch_size, self.latent_dim))
            g_loss = self.combined.train_on_batch(noise, valid)

            if iteration % 10 == 0:
                print(
                    "%d [D loss: %.3f, acc.: %.1f%%] [G loss: %.3f]"
                    % (iteration, d_loss[0], 100 * d_loss[1], g_loss),
                    flush=True,
                )
            if iteration % sample_interval == 0:
                self.sample_images(iteration)

    def sample_images(self, iteration):
        noise = np.random.normal(0, 1, (25, self.latent_dim))
        runes = self.generator.predict_on_batch(noise)[..., 0]
        sheet = runes.reshape(5, 5, 28, 28).transpose(0, 2, 1, 3).reshape(140, 140)
        picture = Image.fromarray(((sheet + 1) * 127.5).astype("uint8"))
        picture.save(os.path.join(OUT, "%05d.png" % iteration))


if __name__ == "__main__":
    gan = RuneGAN()
    gan.train(iterations=4000)
