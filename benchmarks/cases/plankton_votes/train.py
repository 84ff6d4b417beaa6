# cause: for each picture of each batch the tables of all cruises are searched for its name:
#        275000 and 55000 strings are compared for five votes and one row of measurements
# fix: the votes and measurements of the pictures in use become arrays once, in __init__
# expect: 5 to 15 times faster a step
# form: package with four modules, a PyDataset with two inputs and soft labels, fit
# report: https://github.com/r614/amine-team/blob/master/Datagenerator.py
#         (labels.loc[labels.Id==identifier] for each picture; seen in many Sequences that
#         follow the Kaggle kernels for proteins, ships and steel)
# lines: feed.py: 30, 32
"""Learn to name plankton from the votes of many people."""

import pathlib
import tempfile

import keras
import pandas as pd

import network
import survey
from feed import PlanktonFeed

EPOCHS = 14

if __name__ == "__main__":
    keras.utils.set_random_seed(17)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="plankton_"))
    names = survey.make(folder)
    votes = pd.read_csv(folder / "votes.csv")
    casts = pd.read_csv(folder / "casts.csv")

    cut = int(0.85 * len(names))
    train = PlanktonFeed(folder, names[:cut], votes, casts, shuffle=True)
    test = PlanktonFeed(folder, names[cut:], votes, casts)

    model = network.build(survey.SIDE, len(survey.WATER), len(survey.TAXA))
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss="categorical_crossentropy",
        metrics=["kl_divergence"],
    )
    model.fit(train, validation_data=test, epochs=EPOCHS, verbose=2)
    model.save(folder / "plankton.keras")
    print("the model is in", folder)
