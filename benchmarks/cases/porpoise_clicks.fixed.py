# porpoise_clicks.py, fixed by hand: distances by a matrix product
"""An alphabet of porpoise clicks: a VQ autoencoder on patches of hydrophone spectrograms."""

import argparse

import keras
import numpy as np
from keras import layers, ops

SIDE = 64


def click_trains(number, rng):
    """Spectrogram patches with one to three trains of clicks over sea noise."""
    time = np.arange(SIDE, dtype="float32")
    tone = np.arange(SIDE, dtype="float32")[:, None]
    patches = rng.gamma(2.0, 0.04, (number, SIDE, SIDE)).astype("float32")
    for patch in patches:
        for _ in range(rng.integers(1, 4)):
            pitch, width = rng.uniform(20, 58), rng.uniform(2, 7)
            gap, start = rng.uniform(5, 16), rng.uniform(0, 10)
            beat = np.exp(-(((time - start + gap / 2) % gap - gap / 2) ** 2) / 1.2)
            band = np.exp(-(((tone - pitch) / width) ** 2))
            patch += rng.uniform(0.3, 0.9) * band * beat
    return np.clip(patches, 0, 1)[..., None]


class Alphabet(layers.Layer):
    """Replace each vector by the letter that lies nearest; straight-through gradient."""

    def __init__(self, letters, commitment=0.25, **kwargs):
        super().__init__(**kwargs)
        self.letters = letters
        self.commitment = commitment

    def build(self, shape):
        self.codes = self.add_weight(
            name="codes",
            shape=(self.letters, shape[-1]),
            initializer=keras.initializers.RandomUniform(-0.5, 0.5),
        )

    def spell(self, z):
        """The number of the nearest letter for each of the vectors (n, width)."""
        apart = ops.sum(ops.square(self.codes), axis=1) - 2 * ops.matmul(
            z, ops.transpose(self.codes)
        )
        return ops.argmin(apart + ops.sum(ops.square(z), axis=1, keepdims=True), axis=1)

    def call(self, z):
        flat = ops.reshape(z, (-1, z.shape[-1]))
        nearest = ops.reshape(ops.take(self.codes, self.spell(flat), axis=0), ops.shape(z))
        pull = ops.mean(ops.square(nearest - ops.stop_gradient(z)))
        stay = ops.mean(ops.square(ops.stop_gradient(nearest) - z))
        self.add_loss(pull + self.commitment * stay)
        return z + ops.stop_gradient(nearest - z)


def build(letters, width):
    conv = dict(padding="same", activation="relu")
    patch = keras.Input((SIDE, SIDE, 1))
    x = layers.Conv2D(16, 4, strides=2, **conv)(patch)
    x = layers.Conv2D(32, 4, strides=2, **conv)(x)
    z = layers.Conv2D(width, 1, name="vectors")(x)
    z = Alphabet(letters, name="alphabet")(z)
    x = layers.Conv2D(32, 3, **conv)(z)
    x = layers.Conv2DTranspose(16, 4, strides=2, **conv)(x)
    x = layers.Conv2DTranspose(1, 4, strides=2, padding="same", name="again")(x)
    return keras.Model(patch, x)


def main():
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--letters", type=int, default=256)
    ask.add_argument("--width", type=int, default=32)
    ask.add_argument("--patches", type=int, default=1280)
    ask.add_argument("--batch", type=int, default=16)
    ask.add_argument("--epochs", type=int, default=25)
    args = ask.parse_args()

    keras.utils.set_random_seed(21)
    rng = np.random.default_rng(21)
    patches = click_trains(args.patches, rng)
    held_out = click_trains(96, rng)

    model = build(args.letters, args.width)
    model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="mse")
    model.fit(
        patches,
        patches,
        batch_size=args.batch,
        epochs=args.epochs,
        validation_data=(held_out, held_out),
        verbose=2,
    )

    vectors = keras.Model(model.input, model.get_layer("vectors").output)
    z = vectors.predict(held_out[:24], verbose=0).reshape(-1, args.width)
    used = np.unique(ops.convert_to_numpy(model.get_layer("alphabet").spell(z)))
    print(f"{len(used)} of {args.letters} letters in use")


if __name__ == "__main__":
    main()
