"""Scans on disk, one compressed npz file each, and batches of their slices."""

import keras
import numpy as np

SIDE = 128
SLICES = 32


def write_scans(folder, scans=10):
    rng = np.random.default_rng(12)
    z, y, x = np.mgrid[0:SLICES, 0:SIDE, 0:SIDE].astype("float32")
    for number in range(scans):
        centre = rng.uniform((10, 40, 40), (22, 88, 88))
        size = rng.uniform(14, 30)
        away = ((z - centre[0]) * 3) ** 2 + (y - centre[1]) ** 2 + (x - centre[2]) ** 2
        mask = away < size**2
        scan = rng.normal(-200, 60, mask.shape) + 250 * mask
        np.savez_compressed(
            folder / f"scan_{number:02d}.npz",
            scan=scan.astype("int16"),
            mask=mask.astype("uint8"),
        )


class SliceBatches(keras.utils.PyDataset):
    """Batches of slices, drawn from all scans in a new order each epoch."""

    def __init__(self, files, batch_size=8, shuffle=True, **kwargs):
        super().__init__(**kwargs)
        self.items = [(file, k) for file in files for k in range(SLICES)]
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.rng = np.random.default_rng(3)
        self.on_epoch_end()

    def __len__(self):
        return len(self.items) // self.batch_size

    def load_slice(self, file, k):
        with np.load(file) as arrays:
            scan = arrays["scan"][k]
            mask = arrays["mask"][k]
        return np.clip(scan / 400.0, -1, 1), mask

    def __getitem__(self, index):
        start = index * self.batch_size
        images, masks = [], []
        for file, k in self.items[start : start + self.batch_size]:
            image, mask = self.load_slice(file, k)
            images.append(image)
            masks.append(mask)
        x = np.stack(images).astype("float32")[..., None]
        return x, np.stack(masks).astype("float32")[..., None]

    def on_epoch_end(self):
        if self.shuffle:
            self.rng.shuffle(self.items)
