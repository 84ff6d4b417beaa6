"""A small net that sees the picture and knows the water it comes from."""

import keras
from keras import layers


def build(side, measured, taxa):
    picture = keras.Input((side, side, 1), name="picture")
    water = keras.Input((measured,), name="water")
    x = picture
    for filters in (16, 32, 64):
        x = layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.Activation("relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    w = layers.Dense(8, activation="relu")(layers.BatchNormalization()(water))
    x = layers.Dropout(0.2)(layers.Concatenate()([x, w]))
    return keras.Model([picture, water], layers.Dense(taxa, activation="softmax")(x))
