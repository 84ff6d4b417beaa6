# cause: none
"""Learn to predict the next picture of ripples on a pond; the training is a generator."""

import itertools

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

SIDE = 48


def ponds(count=256, seed=80):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:SIDE, :SIDE]
    films = np.zeros((count, SIDE, SIDE, 4), "float32")
    for film in films:
        for _ in range(3):
            cy, cx = rng.uniform(0, SIDE, 2)
            distance = np.hypot(y - cy, x - cx)
            for time in range(4):
                film[..., time] += np.sin(distance * 0.8 - 1.1 * time) * np.exp(-distance / 20)
    return films


def predictor():
    inputs = x = keras.Input((SIDE, SIDE, 3))
    for _ in range(3):
        x = layers.Conv2D(48, 3, padding="same", activation="relu")(x)
    return keras.Model(inputs, layers.Conv2D(1, 3, padding="same")(x))


def learner(model, optimizer, films, batch_size=16):
    """Send it the learning rate, and it gives back the loss after another round."""
    dataset = tf.data.Dataset.from_tensor_slices(films).cache().shuffle(len(films))
    dataset = dataset.batch(batch_size).prefetch(tf.data.AUTOTUNE)

    @tf.function
    def step(batch):
        with tf.GradientTape() as tape:
            error = model(batch[..., :3], training=True) - batch[..., 3:]
            loss = tf.reduce_mean(tf.square(error))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    loss = None
    while True:
        rate = yield loss
        optimizer.learning_rate.assign(rate)
        loss = float(np.mean([step(batch) for batch in dataset]))


model = predictor()
rounds = learner(model, keras.optimizers.Adam(), ponds())
next(rounds)
rate, best = 2e-3, np.inf
for number in itertools.count(1):
    loss = rounds.send(rate)
    print(f"round {number}: rate {rate:.1e} loss {loss:.5f}", flush=True)
    if loss > 0.99 * best:
        rate /= 2
    best = min(best, loss)
    if rate < 1e-4 or number == 24:
        break
rounds.close()
