"""Batches of pictures with what was measured in the water and what people voted."""

import math

import keras
import numpy as np
from PIL import Image

from survey import SIDE, TAXA, WATER


class PlanktonFeed(keras.utils.PyDataset):
    def __init__(self, folder, names, votes, casts, batch_size=32, shuffle=False, **options):
        super().__init__(**options)
        self.folder, self.names = folder, list(names)
        self.votes, self.casts = votes, casts
        self.batch_size, self.shuffle = batch_size, shuffle
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return math.ceil(len(self.names) / self.batch_size)

    def __getitem__(self, index):
        names = self.names[index * self.batch_size : (index + 1) * self.batch_size]
        pictures = np.empty((len(names), SIDE, SIDE, 1), "float32")
        water = np.empty((len(names), len(WATER)), "float32")
        shares = np.zeros((len(names), len(TAXA)), "float32")
        for row, name in enumerate(names):
            pictures[row, :, :, 0] = np.asarray(Image.open(self.folder / name))
            cast = self.casts[self.casts["picture"] == name]
            water[row] = cast[WATER].to_numpy()[0]
            votes = self.votes[self.votes["picture"] == name]
            np.add.at(shares[row], votes["taxon"], votes["sureness"])
        shares /= shares.sum(axis=1, keepdims=True)
        return {"picture": pictures / 255, "water": water}, shares

    def on_epoch_end(self):
        if self.shuffle:
            self.rng.shuffle(self.names)
