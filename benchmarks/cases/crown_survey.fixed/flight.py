"""Tiles as the drone brings them home, one JPEG for each, all of one species."""

import numpy as np
from PIL import Image

SPECIES = ("beech", "oak", "spruce", "pine", "birch", "larch")
SIDE = 416
GREENS = np.array(
    [[92, 130, 60], [84, 112, 52], [48, 84, 56], [70, 100, 72], [130, 150, 84], [120, 136, 62]]
)


def tile(kind, rng):
    """Crowns of a size and a green that are usual for the species."""
    cells = (20, 16, 52, 40, 30, 44)[kind]
    crowns = rng.integers(0, 255, (cells, cells), dtype="uint8")
    crowns = Image.fromarray(crowns).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    light = np.asarray(crowns, "float32")[:, :, None] / 255 + 0.4
    leaves = rng.integers(-14, 14, (SIDE, SIDE, 1), dtype="int8")
    return np.clip(GREENS[kind] * light * rng.uniform(0.7, 1.2) + leaves, 0, 255).astype("uint8")


def fly(folder, number, seed=9):
    rng = np.random.default_rng(seed)
    species = rng.integers(0, len(SPECIES), number)
    files = []
    for i, kind in enumerate(species):
        files.append(str(folder / f"tile_{i:04d}.jpg"))
        Image.fromarray(tile(kind, rng)).save(files[-1], quality=88)
    return files, species
