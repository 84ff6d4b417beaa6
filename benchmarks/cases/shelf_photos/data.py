"""Photographs of shelves: making them, and batches of them for Keras."""

import pathlib

import keras
import numpy as np
from PIL import Image, ImageDraw, ImageStat

KINDS = ["full", "gaps", "empty"]
SIDE = 112


def draw_shelf(kind, rng):
    photo = Image.effect_noise((800, 600), 25).convert("RGB")
    pen = ImageDraw.Draw(photo)
    keep = {"full": 1.0, "gaps": 0.6, "empty": 0.1}[kind]
    for y in range(20, 560, 145):
        pen.rectangle((0, y + 120, 800, y + 132), fill="#7a6a58")
        for x in range(8, 780, 48):
            if rng.random() < keep:
                colour = tuple(int(c) for c in rng.integers(40, 240, 3))
                pen.rectangle((x, y, x + 40, y + 120), fill=colour)
    return photo


def make_photos(folder, each=40):
    rng = np.random.default_rng(17)
    for kind in KINDS:
        (folder / kind).mkdir(parents=True)
        for number in range(each):
            photo = draw_shelf(kind, rng)
            photo.save(folder / kind / f"shelf{number:03d}.jpg", quality=90)


class ShelfPhotos(keras.utils.PyDataset):
    """Small, normalised photographs with the state of the shelf."""

    def __init__(self, folder, batch_size=20, **kwargs):
        super().__init__(**kwargs)
        self.folder = pathlib.Path(folder)
        self.batch_size = batch_size
        self.rng = np.random.default_rng(2)
        self.on_epoch_end()

    def on_epoch_end(self):
        """Look which photographs there are, shuffle them, take mean and deviation."""
        self.files = sorted(self.folder.glob("*/*.jpg"))
        self.rng.shuffle(self.files)
        total, squares = np.zeros(3), np.zeros(3)
        for file in self.files:
            photo = ImageStat.Stat(Image.open(file))
            total += np.array(photo.mean) / 255
            squares += np.array(photo.sum2) / np.array(photo.count) / 255**2
        self.mean = total / len(self.files)
        self.std = np.sqrt(squares / len(self.files) - self.mean**2)

    def __len__(self):
        return len(self.files) // self.batch_size

    def read(self, file):
        photo = Image.open(file).convert("RGB")
        photo = photo.resize((SIDE, SIDE), Image.Resampling.LANCZOS)
        return (np.asarray(photo, "float32") / 255 - self.mean) / self.std

    def __getitem__(self, index):
        files = self.files[index * self.batch_size : (index + 1) * self.batch_size]
        images = np.stack([self.read(file) for file in files])
        labels = np.array([KINDS.index(file.parent.name) for file in files])
        if self.rng.random() < 0.5:
            images = images[:, :, ::-1]
        return images.astype("float32"), labels
