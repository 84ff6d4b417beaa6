"""Listening history of one region, as the export of the app gives it."""

import numpy as np

LISTENERS, EPISODES = 9_000, 5_000
LAST_ACCOUNT, LAST_EPISODE = 800_000, 150_000
TASTES = 6


def load_listens(count=200_000, seed=21):
    """Account number, episode number and the share of the episode that was heard."""
    rng = np.random.default_rng(seed)
    accounts = rng.choice(LAST_ACCOUNT, LISTENERS, replace=False)
    episodes = rng.choice(LAST_EPISODE, EPISODES, replace=False)
    taste = rng.normal(0, 1, (LISTENERS, TASTES))
    topic = rng.normal(0, 1, (EPISODES, TASTES))
    who = rng.integers(LISTENERS, size=count)
    what = (EPISODES * rng.random(count) ** 2).astype(int)
    liking = np.sum(taste[who] * topic[what], axis=1) / 2
    heard = 1 / (1 + np.exp(-liking - rng.normal(0, 0.3, count)))
    return (
        accounts[who].astype("int32"),
        episodes[what].astype("int32"),
        heard.astype("float32"),
    )
