"""Reads the log of plays; writes one on first use."""

import os

import numpy as np
import pandas as pd

LOG = os.path.join(os.path.dirname(__file__), "plays.csv")


def write_log(listeners=600, songs=500, plays=40000, seed=51):
    rng = np.random.default_rng(seed)
    listener_ids = rng.choice(160_000, listeners, replace=False)
    song_ids = rng.choice(240_000, songs, replace=False)
    taste = rng.normal(0, 1, (listeners, 4))
    style = rng.normal(0, 1, (songs, 4))
    who = rng.integers(listeners, size=plays)
    what = rng.integers(songs, size=plays)
    liking = (taste[who] * style[what]).sum(1) + rng.normal(0, 0.5, plays)
    table = pd.DataFrame(
        {
            "listener_id": listener_ids[who],
            "song_id": song_ids[what],
            "finished": (liking > 0).astype("int8"),
        }
    )
    table.to_csv(LOG, index=False)


def load_plays():
    if not os.path.exists(LOG):
        write_log()
    return pd.read_csv(LOG)
