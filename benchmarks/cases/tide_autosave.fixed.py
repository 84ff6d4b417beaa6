# tide_autosave.py, fixed by hand: saved once an epoch
"""Forecast the tide of the next day at a harbour from the two weeks before it."""

import tempfile
from pathlib import Path

import keras
import numpy as np
from keras import layers

PAST, AHEAD = 14 * 24, 24
STATIONS = 6
EPOCHS = 7


def write_years(folder, years=6, seed=30):
    """Hourly levels of some stations, one file for each year."""
    rng = np.random.default_rng(seed)
    hours = np.arange(2000)[:, None]
    shift = rng.uniform(0, 6, (3, STATIONS))
    for year in range(years):
        level = np.zeros((len(hours), STATIONS))
        for n, (period, height) in enumerate(((12.42, 1.6), (12.0, 0.5), (25.8, 0.3))):
            level += height * np.sin(2 * np.pi * hours / period + shift[n] + year)
        wind = np.cumsum(rng.normal(0, 0.05, (len(hours), 1)), axis=0)
        level += wind - wind.mean() + rng.normal(0, 0.05, level.shape)
        np.save(folder / f"levels_{2015 + year}.npy", level.astype("float32"))


class Tides(keras.utils.PyDataset):
    """Batches of two weeks of all stations, and the next day of the first."""

    def __init__(self, paths, batch_size=32, stride=4, **options):
        super().__init__(**options)
        self.years = [np.load(path) for path in paths]
        last = min(len(year) for year in self.years) - PAST - AHEAD
        self.places = [
            (year, hour)
            for year in range(len(self.years))
            for hour in range(0, last, stride)
        ]
        self.batch_size = batch_size
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return len(self.places) // self.batch_size

    def __getitem__(self, index):
        start = index * self.batch_size
        past, ahead = [], []
        for year, hour in self.places[start : start + self.batch_size]:
            levels = self.years[year]
            past.append(levels[hour : hour + PAST])
            ahead.append(levels[hour + PAST : hour + PAST + AHEAD, 0])
        return np.stack(past), np.stack(ahead)

    def on_epoch_end(self):
        self.rng.shuffle(self.places)


def build_model():
    return keras.Sequential(
        [
            keras.Input((PAST, STATIONS)),
            layers.Flatten(),
            layers.Dense(1536, activation="relu"),
            layers.Dense(768, activation="relu"),
            layers.Dense(AHEAD),
        ]
    )


def main():
    keras.utils.set_random_seed(30)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_years(folder)
        paths = sorted(folder.glob("levels_*.npy"))
        train, held_out = Tides(paths[:-1]), Tides(paths[-1:])
        model = build_model()
        model.compile(optimizer="adam", loss="mse", metrics=["mae"])
        autosave = keras.callbacks.ModelCheckpoint(
            str(folder / "autosave.keras"), save_freq="epoch"
        )
        model.fit(
            train,
            validation_data=held_out,
            epochs=EPOCHS,
            callbacks=[autosave, keras.callbacks.TerminateOnNaN()],
            verbose=2,
        )
        again = keras.models.load_model(folder / "autosave.keras")
        print("saved model:", again.evaluate(held_out, verbose=0))


if __name__ == "__main__":
    main()
