# shelf_photos, fixed by hand: data.py reads and resizes the photographs once
"""See whether a shelf in a shop must be filled."""

import pathlib
import tempfile

import keras
from data import KINDS, SIDE, ShelfPhotos, make_photos
from keras import layers

EPOCHS = 17


def build_model():
    model = keras.Sequential([layers.Input((SIDE, SIDE, 3))])
    for filters in (16, 32, 32):
        model.add(layers.Conv2D(filters, 3, strides=2))
        model.add(layers.BatchNormalization())
        model.add(layers.ReLU())
    model.add(layers.GlobalAveragePooling2D())
    model.add(layers.Dense(len(KINDS), activation="softmax"))
    return model


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="shelves-"))
    make_photos(folder)
    photos = ShelfPhotos(folder)
    model = build_model()
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    history = model.fit(photos, epochs=EPOCHS, verbose=2)
    print("best accuracy:", max(history.history["accuracy"]))


if __name__ == "__main__":
    main()
