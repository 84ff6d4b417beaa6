"""Train a network that doubles the resolution of small aerial pictures."""

import keras
import numpy as np
from keras import layers, ops

keras.config.set_floatx("float64")

UPSCALE = 2
LOW = 48
BATCH_SIZE = 16
FEATURES = 48
BLOCKS = 4


def aerial_pictures(count, size, seed=0):
    """Fields and roads seen from above, values 0..1."""
    rng = np.random.default_rng(seed)
    pictures = np.empty((count, size, size, 3))
    for picture in pictures:
        fields = rng.uniform(0.2, 0.8, (6, 6, 3)).repeat(size // 6, 0)
        picture[:] = fields.repeat(size // 6, 1)
        for row in rng.integers(0, size, 3):
            picture[row : row + 2] = 0.9
        for column in rng.integers(0, size, 3):
            picture[:, column : column + 2] = 0.9
        picture += rng.normal(0, 0.02, picture.shape)
    return pictures.clip(0, 1)


def shrink(pictures):
    count, size = pictures.shape[:2]
    tiles = (count, size // UPSCALE, UPSCALE, size // UPSCALE, UPSCALE, 3)
    return pictures.reshape(tiles).mean((2, 4))


class ResidualBlock(layers.Layer):
    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.first = layers.Conv2D(filters, 3, padding="same", activation="relu")
        self.second = layers.Conv2D(filters, 3, padding="same")

    def call(self, inputs):
        return inputs + 0.1 * self.second(self.first(inputs))


class DepthToSpace(layers.Layer):
    def call(self, inputs):
        _, height, width, channels = inputs.shape
        x = ops.reshape(inputs, (-1, height, width, UPSCALE, UPSCALE, channels // 4))
        x = ops.transpose(x, (0, 1, 3, 2, 4, 5))
        return ops.reshape(x, (-1, height * 2, width * 2, channels // 4))


def get_model():
    inputs = keras.Input((LOW, LOW, 3))
    x = head = layers.Conv2D(FEATURES, 5, padding="same")(inputs)
    for _ in range(BLOCKS):
        x = ResidualBlock(FEATURES)(x)
    x = layers.Conv2D(FEATURES, 3, padding="same")(x) + head
    x = DepthToSpace()(layers.Conv2D(3 * UPSCALE**2, 3, padding="same")(x))
    return keras.Model(inputs, x)


def psnr(y_true, y_pred):
    return -10 * ops.log(ops.mean(ops.square(y_true - y_pred))) / np.log(10)


def main():
    high = aerial_pictures(480, LOW * UPSCALE)
    low = shrink(high)
    model = get_model()
    model.compile(
        optimizer=keras.optimizers.Adam(learning_rate=1e-4),
        loss="mean_absolute_error",
        metrics=[psnr],
    )
    model.fit(low, high, batch_size=BATCH_SIZE, epochs=200)


if __name__ == "__main__":
    main()
