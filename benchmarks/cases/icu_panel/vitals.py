"""Stays as the bedside monitors would give them, one row of vitals every ten minutes."""

import numpy as np

STEPS = 120
SIGNS = 8


def stays(number, seed=3):
    rng = np.random.default_rng(seed)
    frailty = rng.normal(0, 1, (number, 4)).astype("float32")
    mix = rng.normal(0, 1, (4, SIGNS)).astype("float32")
    level = frailty @ mix
    drift = (frailty[:, ::-1] @ mix) * np.linspace(0, 1, STEPS, dtype="float32")[:, None, None]
    noise = rng.normal(0, 1, (STEPS, number, SIGNS)).astype("float32")
    for t in range(1, STEPS):
        noise[t] = 0.9 * noise[t - 1] + 0.44 * noise[t]
    signals = np.transpose(level + drift + noise, (1, 0, 2)).copy()

    def yes_no(weights, rate):
        score = frailty @ np.asarray(weights, "float32") + rng.normal(0, 0.5, number)
        return (score > np.quantile(score, 1 - rate)).astype("float32")[:, None]

    def amount(weights):
        score = frailty @ np.asarray(weights, "float32") + rng.normal(0, 0.3, number)
        return score.astype("float32")[:, None]

    phenotypes = [yes_no(rng.normal(0, 1, 4), rng.uniform(0.05, 0.3)) for _ in range(12)]
    answers = {
        "death": yes_no([1.0, 0.5, 0.0, 0.2], 0.12),
        "sepsis": yes_no([0.0, 1.0, 0.4, 0.0], 0.2),
        "ventilation": yes_no([0.3, 0.0, 1.0, 0.1], 0.35),
        "days_left": amount([0.6, 0.2, 0.2, 0.8]),
        "lactate": amount([0.2, 0.9, 0.0, 0.0]),
        "phenotypes": np.concatenate(phenotypes, axis=1),
    }
    return signals, answers
