"""A small CRNN: columns of the plate become time steps."""

import keras
from keras import layers


def build(height, width, letters):
    plate = layers.Input((height, width, 1))
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(plate)
    x = layers.MaxPooling2D((2, 2))(x)
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D((2, 1))(x)
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D((2, 1))(x)
    x = layers.Permute((2, 1, 3))(x)
    x = layers.Reshape((width // 2, height // 8 * 32))(x)
    x = layers.Bidirectional(layers.GRU(32, return_sequences=True))(x)
    return keras.Model(plate, layers.Dense(letters + 1)(x))  # the last one is the blank
