# cause: none, this training is healthy
# fix: none
# expect: nothing to gain by a fix; wide convolutions over whole batches take the time
# form: the training is a Python generator that main() steers by send(), dataclasses,
#       match, noise made in a tf.data map over whole batches
# report: none
# lines: none
"""Take the noise off seismic traces."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, replace

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SAMPLES = 384


@dataclass(frozen=True)
class Plan:
    traces: int = 1600
    batch: int = 32
    channels: int = 48
    epochs: int = 40
    rate: float = 1e-3
    noise: float = 0.35


@dataclass(frozen=True)
class Report:
    epoch: int
    train: float
    test: float
    seconds: float


def shoot(count: int, seed: int) -> np.ndarray:
    """Clean traces: a dozen Ricker wavelets each, later ones weaker."""
    rng = np.random.default_rng(seed)
    clock = np.arange(SAMPLES, dtype="float32")
    traces = np.zeros((count, SAMPLES), "float32")
    for _ in range(12):
        arrival = rng.uniform(10, SAMPLES - 10, (count, 1)).astype("float32")
        pitch = rng.uniform(0.04, 0.09, (count, 1)).astype("float32")
        sign = rng.normal(0, 1, (count, 1)) * np.exp(-arrival / SAMPLES)
        swing = (np.pi * pitch * (clock - arrival)) ** 2
        traces += (sign * (1 - 2 * swing) * np.exp(-swing)).astype("float32")
    return traces[..., None]


def stream(traces: np.ndarray, plan: Plan, shuffle: bool) -> tf.data.Dataset:
    def spoil(clean):
        hiss = tf.random.normal(tf.shape(clean), stddev=plan.noise)
        hum = tf.random.uniform((tf.shape(clean)[0], 1, 1), 0, 0.5)
        phase = tf.random.uniform((tf.shape(clean)[0], 1, 1), 0, 6.28)
        clock = tf.range(SAMPLES, dtype=tf.float32)[None, :, None]
        return clean + hiss + hum * tf.sin(0.31 * clock + phase), clean

    data = tf.data.Dataset.from_tensor_slices(traces)
    if shuffle:
        data = data.shuffle(len(traces))
    data = data.batch(plan.batch, drop_remainder=True)
    return data.map(spoil, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)


def network(plan: Plan) -> keras.Model:
    trace = layers.Input((SAMPLES, 1))
    x = layers.Conv1D(plan.channels, 15, padding="same", activation="relu")(trace)
    for width in (9, 9, 9, 9):
        y = layers.Conv1D(plan.channels, width, padding="same", activation="relu")(x)
        x = layers.Add()([x, y])
    noise = layers.Conv1D(1, 9, padding="same")(x)
    return keras.Model(trace, layers.Subtract()([trace, noise]))


def training(model: keras.Model, plan: Plan) -> Generator[Report, float, None]:
    """One report an epoch; what is sent back is the rate of the next one."""
    adam = keras.optimizers.Adam(plan.rate)
    adam.build(model.trainable_variables)
    train_loss, test_loss = keras.metrics.Mean(), keras.metrics.Mean()

    @tf.function
    def learn(dirty, clean):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.abs(model(dirty, training=True) - clean))
        gradients = tape.gradient(loss, model.trainable_variables)
        adam.apply_gradients(zip(gradients, model.trainable_variables))
        train_loss.update_state(loss)

    @tf.function
    def check(dirty, clean):
        test_loss.update_state(tf.reduce_mean(tf.abs(model(dirty) - clean)))

    train = stream(shoot(plan.traces, seed=1), plan, shuffle=True)
    test = stream(shoot(plan.traces // 8, seed=2), plan, shuffle=False)
    for epoch in range(plan.epochs):
        start = time.perf_counter()
        for dirty, clean in train:
            learn(dirty, clean)
        for dirty, clean in test:
            check(dirty, clean)
        seconds = time.perf_counter() - start
        rate = yield Report(epoch, float(train_loss.result()), float(test_loss.result()), seconds)
        adam.learning_rate.assign(rate)
        train_loss.reset_state()
        test_loss.reset_state()


def main() -> None:
    keras.utils.set_random_seed(1)
    plan = replace(Plan(), noise=0.3)
    run = training(network(plan), plan)
    report, best, rate, waited = next(run), float("inf"), plan.rate, 0
    while True:
        match report:
            case Report(test=test) if test < best:
                best, waited = test, 0
            case _ if waited == 2:
                rate, waited = rate / 2, 0
            case _:
                waited += 1
        print(
            f"{report.epoch:3d}  train {report.train:.4f}  test {report.test:.4f}"
            f"  rate {rate:.1e}  {report.seconds:.1f} s",
            flush=True,
        )
        try:
            report = run.send(rate)
        except StopIteration:
            break


if __name__ == "__main__":
    main()
