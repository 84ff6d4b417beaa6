"""Batches of pictures with what was measured in the water and what people voted."""

import math

import keras
import numpy as np
import pandas as pd
from PIL import Image

from survey import SIDE, TAXA, WATER


class PlanktonFeed(keras.utils.PyDataset):
    def __init__(self, folder, names, votes, casts, batch_size=32, shuffle=False, **options):
        super().__init__(**options)
        self.folder, self.names = folder, list(names)
        self.batch_size, self.shuffle = batch_size, shuffle
        self.rng = np.random.default_rng(0)
        self.order = np.arange(len(self.names))
        self.water = casts.set_index("picture").loc[self.names, WATER].to_numpy("float32")
        votes = votes[votes["picture"].isin(self.names)]
        place = pd.Index(self.names).get_indexer(votes["picture"])
        self.shares = np.zeros((len(self.names), len(TAXA)), "float32")
        np.add.at(self.shares, (place, votes["taxon"]), votes["sureness"])
        self.shares /= self.shares.sum(axis=1, keepdims=True)

    def __len__(self):
        return math.ceil(len(self.names) / self.batch_size)

    def __getitem__(self, index):
        chosen = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        pictures = np.empty((len(chosen), SIDE, SIDE, 1), "float32")
        for row, number in enumerate(chosen):
            pictures[row, :, :, 0] = np.asarray(Image.open(self.folder / self.names[number]))
        return {"picture": pictures / 255, "water": self.water[chosen]}, self.shares[chosen]

    def on_epoch_end(self):
        if self.shuffle:
            self.rng.shuffle(self.order)
