# stream_memory.py, fixed by hand: new frames are written over the oldest ones
"""Foresee the next frame of a surveillance camera, learning while it runs."""

import os
import tempfile

import keras
import numpy as np
from keras import layers

SIDE = 48
CAPACITY = 7000
NEW_FRAMES = 4
BATCH_SIZE = 32
STEPS = 1500


class Camera:
    """A bright spot that wanders over the picture; stands for the real camera."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.place = np.array([SIDE / 2, SIDE / 2])
        self.speed = self.rng.normal(0, 1, 2)
        self.grid = np.mgrid[0:SIDE, 0:SIDE].astype("float32")

    def frame(self):
        self.speed += self.rng.normal(0, 0.2, 2)
        self.place += self.speed
        outside = (self.place < 4) | (self.place > SIDE - 4)
        self.speed[outside] *= -1
        self.place = np.clip(self.place, 4, SIDE - 4)
        away = (self.grid - self.place[:, None, None].astype("float32")) ** 2
        return np.exp(-away.sum(0) / 12)

    def frames(self, count):
        return np.stack([self.frame() for _ in range(count)])


class Memory:
    """The last pairs of frames, from which batches are drawn."""

    def __init__(self, frames):
        self.before = frames[:-1].copy()
        self.after = frames[1:].copy()
        self.oldest = 0
        self.rng = np.random.default_rng(1)

    def add(self, before, after):
        places = (self.oldest + np.arange(len(before))) % len(self.before)
        self.before[places] = before
        self.after[places] = after
        self.oldest = (self.oldest + len(before)) % len(self.before)

    def sample(self, count):
        chosen = self.rng.integers(0, len(self.before), count)
        return self.before[chosen, ..., None], self.after[chosen, ..., None]


def build_model():
    model = keras.Sequential(
        [
            layers.Input((SIDE, SIDE, 1)),
            layers.Conv2D(16, 5, strides=4, padding="same", activation="relu"),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.Conv2DTranspose(1, 5, strides=4, padding="same"),
        ]
    )
    model.compile(keras.optimizers.Adam(1e-3), "mse")
    return model


camera = Camera(7)
memory = Memory(camera.frames(CAPACITY + 1))
model = build_model()
last = camera.frame()
losses = []
for step in range(1, STEPS + 1):
    new = camera.frames(NEW_FRAMES)
    memory.add(np.concatenate([last[None], new[:-1]]), new)
    last = new[-1]
    x, y = memory.sample(BATCH_SIZE)
    losses.append(model.train_on_batch(x, y))
    if step % 100 == 0:
        print(f"step {step}: loss {np.mean(losses[-100:]):.5f}", flush=True)
model.save(os.path.join(tempfile.mkdtemp(prefix="camera-"), "next_frame.keras"))
