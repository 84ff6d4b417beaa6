"""Train a dense autoencoder on texture patches of 8 by 8 pixels."""

import argparse

import keras
import numpy as np
from keras import layers


def patches(count, side=8):
    """Patches of smooth random textures, one row of pixels each."""
    rng = np.random.default_rng(2)
    texture = rng.random((512, 512)).astype("float32")
    for axis in (0, 1):
        texture = sum(np.roll(texture, shift, axis) for shift in range(4)) / 4
    y, x = rng.integers(0, 512 - side, (2, count, 1, 1))
    rows, columns = np.mgrid[:side, :side]
    return texture[y + rows, x + columns].reshape(count, side * side)


def build(code):
    return keras.Sequential(
        [
            keras.Input((64,)),
            layers.Dense(128, activation="relu"),
            layers.Dense(code, activation="relu"),
            layers.Dense(128, activation="relu"),
            layers.Dense(64),
        ]
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--code", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=60)
    args = parser.parse_args()

    x = patches(128_000)
    autoencoder = build(args.code)
    autoencoder.compile(optimizer="adam", loss="mse", steps_per_execution=250)
    autoencoder.fit(x, x, batch_size=128, epochs=args.epochs)


if __name__ == "__main__":
    main()
