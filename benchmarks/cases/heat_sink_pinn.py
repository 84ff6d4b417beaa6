# cause: the second derivatives come from tape.jacobian, which derives the slope at each
#        point by the coordinates of all other points too: 400 x 400 entries, of which
#        only the small blocks on the diagonal are not zero and are used
# fix: tape.batch_jacobian, where each point is derived by its own coordinates only
# expect: more than 20 times faster a step
# form: a PINN with nested tapes, tf.function step, own loop, settings in a NamedTuple
# report: https://github.com/tensorflow/tensorflow/issues/34087
#         https://github.com/tensorflow/tensorflow/issues/36227
#         https://github.com/tensorflow/tensorflow/issues/52001
# lines: 70, 71
"""Temperature of a chip on a heat sink: lap(T) + q(x, y) = 0, T = 0 at the rim."""

import time
from typing import NamedTuple

import numpy as np
import tensorflow as tf


class Settings(NamedTuple):
    width: int = 32
    depth: int = 3
    inside: int = 200
    rim: int = 120
    rounds: int = 1000
    steps: int = 25
    rate: float = 2e-3
    rim_weight: float = 20.0


def network(s: Settings) -> tf.keras.Model:
    net = tf.keras.Sequential([tf.keras.Input((2,))])
    for _ in range(s.depth):
        net.add(tf.keras.layers.Dense(s.width, activation="tanh"))
    net.add(tf.keras.layers.Dense(1))
    return net


def source(xy: tf.Tensor) -> tf.Tensor:
    """Two hot cores on the chip."""
    first = tf.reduce_sum((xy - [0.3, 0.4]) ** 2, axis=1)
    second = tf.reduce_sum((xy - [0.7, 0.6]) ** 2, axis=1)
    return 30.0 * tf.exp(-first / 0.01) + 20.0 * tf.exp(-second / 0.02)


class Sampler:
    """Fresh points inside the square and on its rim."""

    def __init__(self, s: Settings, seed: int = 8):
        self.s = s
        self.rng = np.random.default_rng(seed)

    def inside(self) -> tf.Tensor:
        return tf.constant(self.rng.uniform(0, 1, (self.s.inside, 2)), tf.float32)

    def rim(self) -> tf.Tensor:
        points = self.rng.uniform(0, 1, (self.s.rim, 2))
        side = self.rng.integers(0, 4, self.s.rim)
        points[np.arange(self.s.rim), side % 2] = side // 2
        return tf.constant(points, tf.float32)


def laplacian(net: tf.keras.Model, xy: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as outer:
        outer.watch(xy)
        with tf.GradientTape() as inner:
            inner.watch(xy)
            heat = net(xy)
        slope = inner.gradient(heat, xy)  # (n, 2)
    bend = outer.jacobian(slope, xy)  # (n, 2, n, 2)
    own = tf.linalg.diag_part(tf.transpose(bend, [1, 3, 0, 2]))  # (2, 2, n)
    return own[0, 0] + own[1, 1]


def main(s: Settings) -> None:
    tf.keras.utils.set_random_seed(8)
    net = network(s)
    adam = tf.keras.optimizers.Adam(s.rate)
    sampler = Sampler(s)

    @tf.function
    def step(inside, rim):
        with tf.GradientTape() as tape:
            equation = tf.reduce_mean((laplacian(net, inside) + source(inside)) ** 2)
            border = tf.reduce_mean(net(rim) ** 2)
            loss = equation + s.rim_weight * border
        gradients = tape.gradient(loss, net.trainable_variables)
        adam.apply_gradients(zip(gradients, net.trainable_variables))
        return equation, border

    for number in range(s.rounds):
        start = time.perf_counter()
        for _ in range(s.steps):
            equation, border = step(sampler.inside(), sampler.rim())
        print(
            f"round {number:3d}  equation {float(equation):9.4f}  rim {float(border):.5f}"
            f"  {time.perf_counter() - start:.2f} s",
            flush=True,
        )

    hottest = float(tf.reduce_max(net(sampler.inside())))
    print(f"hottest point {hottest:.3f}")


if __name__ == "__main__":
    main(Settings())
