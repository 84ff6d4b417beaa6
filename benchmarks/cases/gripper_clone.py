# cause: `np.random.choice(..., replace=False)` permutes all rows in every update.
# expect: 4.7 times as fast (each step or epoch)
# report: keiohta/tf2rl#126
# lines: 38, 75
"""Clone the behaviour of an operator who steers a gripper, from recorded moves."""

import time

import keras
import numpy as np
from keras import layers

STATES, ACTIONS = 18, 4
MOVES = 800_000
BATCH_SIZE = 128
UPDATES = 40_000


class Recordings:
    """All moves of the operator: joint states, the commands given, and the weights."""

    def __init__(self, moves, seed=8):
        rng = np.random.default_rng(seed)
        self.states = rng.standard_normal((moves, STATES), dtype="float32")
        gain = rng.normal(size=(STATES, ACTIONS)).astype("float32") / 4
        self.commands = np.tanh(self.states @ gain)
        self.commands += 0.05 * rng.standard_normal((moves, ACTIONS), dtype="float32")
        self.mean = self.states[:20_000].mean(axis=0)
        self.scale = self.states[:20_000].std(axis=0) + 1e-6

    def __len__(self):
        return len(self.states)

    def normalise(self, states):
        return (states - self.mean) / self.scale

    def sample(self, size):
        rows = np.random.choice(len(self), size, replace=False)
        return self.normalise(self.states[rows]), self.commands[rows]

    def tail(self, size):
        return self.normalise(self.states[-size:]), self.commands[-size:]


def build_policy():
    policy = keras.Sequential(
        [
            layers.Input((STATES,)),
            layers.Dense(256, activation="tanh"),
            layers.Dense(256, activation="tanh"),
            layers.Dense(ACTIONS, activation="tanh"),
        ]
    )
    schedule = keras.optimizers.schedules.CosineDecay(1e-3, UPDATES)
    policy.compile(optimizer=keras.optimizers.Adam(schedule), loss="huber")
    return policy


def jitter(states, amount=0.02):
    """Sensors are never quite still."""
    noise = np.random.normal(0.0, amount, states.shape)
    return states + noise.astype("float32")


def validate(policy, held_out):
    states, commands = held_out
    guessed = policy.predict_on_batch(states)
    return float(np.abs(guessed - commands).mean())


def train(policy, recordings):
    held_out = recordings.tail(2048)
    losses, began = [], time.perf_counter()
    for update in range(1, UPDATES + 1):
        states, commands = recordings.sample(BATCH_SIZE)
        losses.append(policy.train_on_batch(jitter(states), commands))
        if update % 250 == 0:
            error = validate(policy, held_out)
            took = time.perf_counter() - began
            mean = float(np.mean(losses[-250:]))
            print(f"{update:6d} loss {mean:.4f} error {error:.4f} {took:.0f} s")


if __name__ == "__main__":
    np.random.seed(3)
    keras.utils.set_random_seed(3)
    train(build_policy(), Recordings(MOVES))
