# scan_slices, fixed by hand: data.py unpacks each scan once
"""Outline a growth in slices of scans with a small U-Net."""

import pathlib
import tempfile

import keras
from data import SIDE, SliceBatches, write_scans
from keras import layers

EPOCHS = 8


def block(x, filters):
    x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return layers.BatchNormalization()(x)


def build_model():
    inputs = layers.Input((SIDE, SIDE, 1))
    first = block(layers.AveragePooling2D(2)(inputs), 8)
    second = block(layers.MaxPooling2D(2)(first), 16)
    third = block(layers.MaxPooling2D(2)(second), 32)
    x = layers.UpSampling2D(2)(third)
    x = block(layers.Concatenate()([x, second]), 16)
    x = layers.UpSampling2D(2)(x)
    x = block(layers.Concatenate()([x, first]), 8)
    x = layers.UpSampling2D(2)(layers.Conv2D(1, 1)(x))
    return keras.Model(inputs, layers.Activation("sigmoid")(x))


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="scans-"))
    write_scans(folder)
    files = sorted(folder.glob("*.npz"))
    train = SliceBatches(files[:-2])
    test = SliceBatches(files[-2:], shuffle=False)
    model = build_model()
    model.compile("adam", "binary_crossentropy", metrics=[keras.metrics.BinaryIoU()])
    model.fit(train, validation_data=test, epochs=EPOCHS, verbose=2)
    model.save(folder / "unet.keras")


if __name__ == "__main__":
    main()
