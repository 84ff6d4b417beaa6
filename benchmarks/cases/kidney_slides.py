# cause: the class weights are a property of the dataset that sorts and counts the labels of
#        all masks anew for each batch
# fix: functools.cached_property, so that the masks are counted once
# expect: 2.6 to 3 times faster a step (measured 159 -> 50 and 252 -> 96 ms on a busy machine)
# form: PyDataset over arrays with sample weights, small encoder-decoder, main(), fit
# report: https://github.com/Golbstein/Keras-segmentation-deeplab-v3.1/issues/11
#         https://github.com/keras-team/keras/issues/10982
# lines: 55-56, 58, 69
"""Tell glomeruli, tubules and vessels apart on tiles of stained kidney slides."""

import math

import keras
import numpy as np
from keras import layers

SIDE = 96
TISSUES = ("background", "tubule", "glomerulus", "vessel", "sclerosis")
# Typical colours after the PAS stain.
STAIN = np.array(
    [[232, 225, 233], [205, 150, 190], [170, 100, 160], [215, 120, 140], [150, 110, 190]]
)


def paint(number, seed):
    """Tiles (uint8) and masks (uint8): discs of tissue over a background."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:SIDE, :SIDE]
    masks = np.zeros((number, SIDE, SIDE), "uint8")
    for mask in masks:
        for tissue in rng.choice([1, 1, 1, 1, 2, 3, 4], rng.integers(4, 10)):
            y, x = rng.uniform(0, SIDE, 2)
            radius = {1: 10, 2: 20, 3: 8, 4: 6}[tissue] * rng.uniform(0.7, 1.3)
            mask[(row - y) ** 2 + (column - x) ** 2 < radius**2] = tissue
    tiles = STAIN.astype("int16")[masks]
    tiles += rng.integers(-40, 40, tiles.shape, dtype="int16")
    return np.clip(tiles, 0, 255).astype("uint8"), masks


class SlideTiles(keras.utils.PyDataset):
    """Batches of (tile, mask, weight of each pixel), shuffled and flipped."""

    def __init__(self, tiles, masks, batch, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.tiles, self.masks, self.batch = tiles, masks, batch
        self.rng = np.random.default_rng(seed)
        self.on_epoch_end()

    def __len__(self):
        return math.ceil(len(self.tiles) / self.batch)

    def on_epoch_end(self):
        self.order = self.rng.permutation(len(self.tiles))

    @property
    def class_weights(self):
        """Balanced: rare tissues count more, the mean weight of a pixel is 1."""
        labels, counts = np.unique(self.masks, return_counts=True)
        weights = np.zeros(len(TISSUES), "float32")
        weights[labels] = counts.sum() / (len(labels) * counts)
        return weights

    def __getitem__(self, index):
        rows = self.order[index * self.batch : (index + 1) * self.batch]
        tile = self.tiles[rows].astype("float32") / 255.0
        mask = self.masks[rows]
        if self.rng.random() < 0.5:
            tile, mask = tile[:, :, ::-1], mask[:, :, ::-1]
        return tile, mask, self.class_weights[mask]


def build():
    conv = dict(padding="same", activation="relu")
    tile = keras.Input((SIDE, SIDE, 3))
    a = layers.Conv2D(12, 5, strides=2, **conv)(tile)
    b = layers.Conv2D(24, 3, strides=2, **conv)(a)
    b = layers.Conv2D(24, 3, **conv)(b)
    c = layers.Conv2D(48, 3, strides=2, **conv)(b)
    c = layers.Conv2D(48, 3, **conv)(c)
    x = layers.Conv2DTranspose(24, 2, strides=2, **conv)(c)
    x = layers.Conv2D(24, 3, **conv)(layers.Concatenate()([x, b]))
    x = layers.Conv2DTranspose(12, 2, strides=2, **conv)(x)
    x = layers.Conv2D(12, 3, **conv)(layers.Concatenate()([x, a]))
    x = layers.Conv2DTranspose(len(TISSUES), 2, strides=2)(x)
    return keras.Model(tile, x)


def main():
    keras.utils.set_random_seed(6)
    train = SlideTiles(*paint(900, seed=6), batch=12)
    held_out = paint(60, seed=7)
    model = build()
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="pixels")],
    )
    model.fit(
        train,
        epochs=20,
        validation_data=(held_out[0].astype("float32") / 255.0, held_out[1]),
        verbose=2,
    )
    guess = model.predict(held_out[0].astype("float32") / 255.0, verbose=0).argmax(-1)
    for number, tissue in enumerate(TISSUES):
        both = ((guess == number) & (held_out[1] == number)).sum()
        either = ((guess == number) | (held_out[1] == number)).sum()
        print(f"{tissue:12s} IoU {both / max(either, 1):.3f}")


if __name__ == "__main__":
    main()
