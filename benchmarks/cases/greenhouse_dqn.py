# cause: each update of the Q-network is a call of fit with a single batch: fit builds a
#        dataset, an iterator and its callbacks anew, some ten times the work of the update
# fix: train_on_batch
# expect: about 15 times faster a day of 96 updates (measured 11.3 -> 0.7 s, busy machine)
# form: deep Q-learning in an own loop with replay memory and target network, dataclass
# report: https://github.com/tensorflow/tensorflow/issues/35124
#         https://github.com/keon/deep-q-learning/issues/18
# lines: 137
"""Learn to heat and air a tomato greenhouse by deep Q-learning."""

import time
from dataclasses import dataclass

import keras
import numpy as np
from keras import layers

# (heating, vents, misting) of each action
ACTIONS = np.array(
    [[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0], [0, 2, 0], [0, 0, 1], [0, 1, 1]], "float32"
)


@dataclass
class Settings:
    houses: int = 24
    quarters: int = 96  # of an hour, a day
    days: int = 60
    batch: int = 128
    memory: int = 50_000
    discount: float = 0.98
    curious: float = 0.3
    target_every: int = 200


class Greenhouses:
    """Several houses side by side: warmth, humidity, sun and wind outside, time of day."""

    def __init__(self, number, seed=4):
        self.number = number
        self.rng = np.random.default_rng(seed)
        self.dawn()

    def dawn(self):
        n = self.number
        self.quarter = 0
        self.warmth = self.rng.normal(16, 2, n)
        self.humidity = self.rng.uniform(0.5, 0.9, n)
        self.outside = self.rng.normal(9, 5, n)
        self.cloud = self.rng.uniform(0, 1, n)
        return self.state()

    def state(self):
        day = 2 * np.pi * self.quarter / 96
        columns = [
            (self.warmth - 20) / 8,
            (self.humidity - 0.7) * 4,
            (self.outside - 10) / 8,
            self.cloud,
            np.full(self.number, np.sin(day)),
            np.full(self.number, np.cos(day)),
        ]
        return np.stack(columns, axis=1).astype("float32")

    def step(self, action):
        heat, vent, mist = ACTIONS[action].T
        self.quarter += 1
        sun = np.maximum(0, np.sin(2 * np.pi * (self.quarter - 24) / 96)) * (1.2 - self.cloud)
        leak = 0.03 + 0.09 * vent
        self.warmth += 1.1 * heat + 1.6 * sun - leak * (self.warmth - self.outside) - 0.5 * mist
        self.humidity += 0.02 * sun + 0.06 * mist - (0.01 + 0.05 * vent) * (self.humidity - 0.45)
        self.humidity = np.clip(self.humidity, 0, 1)
        self.cloud = np.clip(self.cloud + self.rng.normal(0, 0.05, self.number), 0, 1)
        comfort = np.exp(-(((self.warmth - 22) / 4) ** 2)) + np.exp(
            -(((self.humidity - 0.75) / 0.12) ** 2)
        )
        return self.state(), (comfort - 0.15 * heat - 0.05 * mist).astype("float32")


class Memory:
    """A ring of transitions."""

    def __init__(self, size, width, seed=5):
        self.rng = np.random.default_rng(seed)
        self.before = np.zeros((size, width), "float32")
        self.after = np.zeros((size, width), "float32")
        self.action = np.zeros(size, "int64")
        self.reward = np.zeros(size, "float32")
        self.size, self.filled, self.next = size, 0, 0

    def add(self, before, action, reward, after):
        rows = (self.next + np.arange(len(action))) % self.size
        self.before[rows], self.after[rows] = before, after
        self.action[rows], self.reward[rows] = action, reward
        self.next = (self.next + len(action)) % self.size
        self.filled = min(self.filled + len(action), self.size)

    def sample(self, number):
        rows = self.rng.integers(0, self.filled, number)
        return self.before[rows], self.action[rows], self.reward[rows], self.after[rows]


def q_network(width):
    net = keras.Sequential(
        [
            keras.Input((width,)),
            layers.Dense(128, activation="relu"),
            layers.Dense(128, activation="relu"),
            layers.Dense(len(ACTIONS)),
        ]
    )
    net.compile(optimizer=keras.optimizers.Adam(5e-4), loss="huber")
    return net


class Gardener:
    def __init__(self, s, width):
        self.s = s
        self.rng = np.random.default_rng(6)
        self.net, self.target = q_network(width), q_network(width)
        self.target.set_weights(self.net.get_weights())
        self.memory = Memory(s.memory, width)
        self.updates = 0

    def act(self, state, curious):
        action = self.net.predict_on_batch(state).argmax(axis=1)
        guess = self.rng.integers(0, len(ACTIONS), len(state))
        return np.where(self.rng.random(len(state)) < curious, guess, action)

    def learn(self):
        before, action, reward, after = self.memory.sample(self.s.batch)
        best = self.net.predict_on_batch(after).argmax(axis=1)
        rows = np.arange(self.s.batch)
        future = self.target.predict_on_batch(after)[rows, best]
        q = np.array(self.net.predict_on_batch(before))
        q[rows, action] = reward + self.s.discount * future
        self.net.fit(before, q, batch_size=self.s.batch, epochs=1, verbose=0)
        self.updates += 1
        if self.updates % self.s.target_every == 0:
            self.target.set_weights(self.net.get_weights())


def main():
    s = Settings()
    keras.utils.set_random_seed(4)
    houses = Greenhouses(s.houses)
    gardener = Gardener(s, houses.state().shape[1])
    for day in range(s.days):
        start, earned = time.perf_counter(), 0.0
        state = houses.dawn()
        for _ in range(s.quarters):
            action = gardener.act(state, s.curious * 0.95**day)
            after, reward = houses.step(action)
            gardener.memory.add(state, action, reward, after)
            gardener.learn()
            state, earned = after, earned + reward.mean()
        print(
            f"day {day:2d}  comfort {earned / s.quarters:.3f}"
            f"  {time.perf_counter() - start:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
