# h5_spectra.py, fixed by hand: the spectra are read into memory once
"""Name minerals by their Raman spectra, which lie in one HDF5 file."""

import os
import tempfile

import h5py
import keras
import numpy as np
from keras import layers

MINERALS = ["quartz", "calcite", "gypsum", "olivine", "pyrite", "albite"]
SPECTRA = 4096
POINTS = 1024
BATCH_SIZE = 64
EPOCHS = 8


def write_spectra(path):
    rng = np.random.default_rng(4)
    axis = np.linspace(0, 1, POINTS, dtype="float32")
    labels = rng.integers(0, len(MINERALS), SPECTRA)
    places = rng.uniform(0.05, 0.95, (len(MINERALS), 7))
    with h5py.File(path, "w") as store:
        spectra = store.create_dataset(
            "spectra",
            (SPECTRA, POINTS),
            "float32",
            chunks=(256, POINTS),
            compression="gzip",
        )
        for start in range(0, SPECTRA, 256):
            mine = places[labels[start : start + 256]]
            lines = np.exp(-(((axis - mine[..., None]) / 0.01) ** 2)).sum(1)
            noise = rng.normal(0, 0.15, lines.shape)
            spectra[start : start + 256] = np.round(lines + noise, 3)
        store["label"] = labels.astype("int32")


class Spectra(keras.utils.PyDataset):
    """Shuffled batches of spectra with their mineral."""

    def __init__(self, path, rows, batch_size, **kwargs):
        super().__init__(**kwargs)
        with h5py.File(path, "r") as store:
            self.spectra = store["spectra"][:]
            self.labels = store["label"][:]
        self.rows = rows
        self.batch_size = batch_size
        self.rng = np.random.default_rng(0)
        self.on_epoch_end()

    def __len__(self):
        return len(self.rows) // self.batch_size

    def __getitem__(self, index):
        rows = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        rows = np.sort(rows)
        x = self.spectra[rows]
        x = x - x.mean(axis=1, keepdims=True)
        return x[..., None], self.labels[rows]

    def on_epoch_end(self):
        self.order = self.rng.permutation(self.rows)


def build_model():
    inputs = layers.Input((POINTS, 1))
    x = inputs
    for filters in (8, 16, 32):
        x = layers.Conv1D(filters, 9, strides=4, activation="relu")(x)
    x = layers.Flatten()(x)
    x = layers.Dense(64, activation="relu")(x)
    outputs = layers.Dense(len(MINERALS), activation="softmax")(x)
    return keras.Model(inputs, outputs)


def main():
    path = os.path.join(tempfile.mkdtemp(prefix="raman-"), "spectra.h5")
    write_spectra(path)
    rows = np.random.default_rng(1).permutation(SPECTRA)
    train = Spectra(path, rows[384:], BATCH_SIZE)
    held_out = Spectra(path, rows[:384], BATCH_SIZE)
    model = build_model()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(train, validation_data=held_out, epochs=EPOCHS, verbose=2)
    model.save(os.path.join(os.path.dirname(path), "minerals.keras"))


if __name__ == "__main__":
    main()
