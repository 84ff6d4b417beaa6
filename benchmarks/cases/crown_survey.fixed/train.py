# crown_survey, fixed by hand: the crop comes before the colours
"""Name the tree species from crops of a drone survey."""

import tempfile
from pathlib import Path

import keras
from flight import SPECIES, fly
from keras import layers
from pipeline import CROP, held_out_crops, training_crops

TILES = 200
BATCH = 16
EPOCHS = 90


def crown_net():
    net = keras.Sequential([keras.Input((CROP, CROP, 3))], name="crown_net")
    net.add(layers.Conv2D(16, 5, strides=3, activation="relu"))
    net.add(layers.Conv2D(32, 3, strides=2, activation="relu"))
    net.add(layers.Conv2D(48, 3, activation="relu"))
    net.add(layers.GlobalAveragePooling2D())
    net.add(layers.Dense(48, activation="relu"))
    net.add(layers.Dense(len(SPECIES)))
    return net


def main():
    keras.utils.set_random_seed(9)
    with tempfile.TemporaryDirectory(prefix="crowns_") as folder:
        files, species = fly(Path(folder), TILES)
        cut = int(0.9 * TILES)
        train = training_crops(files[:cut], species[:cut], BATCH)
        held_out = held_out_crops(files[cut:], species[cut:], BATCH)
        net = crown_net()
        net.compile(
            optimizer=keras.optimizers.Adam(1e-3),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
        net.fit(train, validation_data=held_out, epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
