# plate_reader, fixed by hand: the metric reads the best path (metrics.py)
"""Read number plates: python train.py [folder with PNG files named after their text]"""

import sys

import keras

import files
from metrics import CharErrorRate, ctc_loss
from network import build


def main(argv):
    keras.utils.set_random_seed(5)
    folder = argv[1] if len(argv) > 1 else files.print_plates(1400)
    pictures, texts = files.load(folder)
    held = len(pictures) // 8
    train = files.batches(pictures[held:], texts[held:], shuffle=True)
    test = files.batches(pictures[:held], texts[:held], shuffle=False)

    model = build(files.HEIGHT, files.WIDTH, len(files.LETTERS))
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3, clipnorm=5.0),
        loss=ctc_loss,
        metrics=[CharErrorRate()],
    )
    model.summary()
    model.fit(
        train,
        validation_data=test,
        epochs=40,
        callbacks=[keras.callbacks.ReduceLROnPlateau("val_cer", mode="min", patience=4)],
        verbose=2,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
