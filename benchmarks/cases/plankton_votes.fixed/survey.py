"""The survey's files: pictures of one cruise, the tables of all of them."""

import numpy as np
import pandas as pd
from PIL import Image

TAXA = ["copepod", "diatom", "jelly", "krill", "larva", "detritus"]
WATER = ["depth", "temperature", "salinity"]
SIDE = 64


def draw(taxa, rng):
    """Grey pictures of something more or less round, long or torn."""
    y, x = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    turn = rng.uniform(0, np.pi, (len(taxa), 1, 1))
    along = x * np.cos(turn) + y * np.sin(turn)
    across = y * np.cos(turn) - x * np.sin(turn)
    length = np.array([0.5, 0.3, 0.6, 0.8, 0.35, 0.5])[taxa][:, None, None]
    width = np.array([0.25, 0.28, 0.55, 0.2, 0.15, 0.4])[taxa][:, None, None]
    waves = np.array([0, 14, 4, 9, 6, 20])[taxa][:, None, None]
    body = np.exp(-((along / length) ** 4) - (across / width) ** 4)
    body *= 0.7 + 0.3 * np.cos(waves * along)
    noise = rng.normal(0, 0.08, body.shape)
    return np.clip(235 - 200 * body * rng.uniform(0.6, 1, turn.shape) + 255 * noise, 0, 255)


def make(folder, here=1500, everywhere=55_000, voters=5, seed=9):
    """Write PICTURE.png for this cruise, votes.csv and casts.csv for all cruises."""
    rng = np.random.default_rng(seed)
    names = np.array([f"cruise{n // 1500:02d}_{n % 1500:04d}.png" for n in range(everywhere)])
    true = rng.integers(len(TAXA), size=everywhere)

    wrong = rng.integers(len(TAXA), size=(everywhere, voters))
    sure = rng.beta(4, 1.5, (everywhere, voters))
    taxon = np.where(rng.random((everywhere, voters)) < sure, true[:, None], wrong)
    votes = pd.DataFrame(
        {
            "picture": np.repeat(names, voters),
            "voter": rng.integers(1, 380, everywhere * voters),
            "taxon": taxon.ravel(),
            "sureness": sure.ravel().round(2),
        }
    )
    votes.sample(frac=1, random_state=2).to_csv(folder / "votes.csv", index=False)

    casts = pd.DataFrame({"picture": names})
    casts["depth"] = (rng.gamma(2.0, 20.0, everywhere) + 8 * true).round(1)
    casts["temperature"] = (14 - casts["depth"] / 20 + rng.normal(0, 1, everywhere)).round(2)
    casts["salinity"] = rng.normal(34.5, 0.6, everywhere).round(2)
    casts.to_csv(folder / "casts.csv", index=False)

    for name, grey in zip(names, draw(true[:here], rng).astype("uint8")):
        Image.fromarray(grey).save(folder / name)
    return names[:here].tolist()
