# cause: the metric decodes every batch of the training with a CTC beam search of width 100,
#        only to print an error rate: that takes longer than learning from the batch
# fix: decode greedily in the metric
# expect: 2 to 6 times faster a step
# form: package of three modules, CTC loss and a metric of one's own, compile and fit
# report: https://github.com/knaw-huc/loghi-htr (CERMetric(greedy=False, beam_width=10) by
#         default, in compile); https://github.com/adimyth/handwritten_ocr metrics.py (greedy)
# lines: reader.py: 47-49; train.py: 34
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
