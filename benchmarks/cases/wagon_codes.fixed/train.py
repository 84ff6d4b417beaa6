# wagon_codes, fixed by hand: the metric (reader.py) decodes greedily
"""Read the codes of goods wagons."""

import pathlib
import tempfile

import keras

import reader
import strips

WAGONS = 2000
EPOCHS = 14


def main():
    keras.utils.set_random_seed(2)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="wagons_"))
    strips.photograph(folder, WAGONS)
    pictures, codes = strips.read(folder)
    cut = int(0.9 * WAGONS)

    model = reader.build(strips.WIDTH, strips.HEIGHT, len(strips.SIGNS))
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3, clipnorm=5.0),
        loss=reader.ctc,
        metrics=[reader.ReadingErrors()],
    )
    model.fit(
        pictures[:cut],
        codes[:cut],
        batch_size=32,
        epochs=EPOCHS,
        validation_data=(pictures[cut:], codes[cut:]),
        verbose=2,
    )
    model.save_weights(folder / "reader.weights.h5")
    print("weights are in", folder)


if __name__ == "__main__":
    main()
