# cause: none, this training is healthy
# fix: none
# expect: nothing to gain by a fix; nothing here is to be called a defect
# form: evolution of small nets without any gradient: all nets of a generation are computed
#       at once by einsum in one tf.function; the score is a table of costs, not a loss
# report: none, the form is that of evolution strategies
# lines: none
"""Sort tremors by what a wrong alarm costs, which no gradient can follow."""

import numpy as np
import tensorflow as tf

KINDS = ["quake", "blast", "traffic", "wind", "storm surf"]
BANDS, HIDDEN = 56, 32
PAIRS, EVENTS = 96, 1024
GENERATIONS = 1500

# What it costs to take the tremor of a row for that of a column.
COSTS = np.array(
    [
        [0.0, 6.0, 9.0, 9.0, 8.0],
        [3.0, 0.0, 4.0, 5.0, 5.0],
        [2.0, 1.0, 0.0, 0.3, 0.3],
        [2.0, 1.0, 0.3, 0.0, 0.2],
        [2.5, 1.0, 0.3, 0.2, 0.0],
    ],
    "float32",
)


def listen(count, rng):
    """Energy in bands of frequency, in decibels, as the stations report it."""
    kind = rng.choice(len(KINDS), count, p=[0.1, 0.1, 0.35, 0.3, 0.15])
    band = np.arange(BANDS)
    centre = np.array([14, 26, 38, 22, 8])[kind][:, None] + rng.normal(0, 4, (count, 1))
    width = np.array([9, 6, 8, 16, 5])[kind][:, None]
    energy = 30 * np.exp(-(((band - centre) / width) ** 2)) + rng.normal(0, 6, (count, BANDS))
    return (energy / 15).astype("float32"), kind.astype("int32")


class Evolution(tf.Module):
    shapes = [(BANDS, HIDDEN), (HIDDEN,), (HIDDEN, len(KINDS)), (len(KINDS),)]

    def __init__(self, energy, kind, spread=0.05, rate=0.06):
        super().__init__()
        self.energy, self.kind = tf.constant(energy), tf.constant(kind)
        self.costs = tf.constant(COSTS)
        self.sizes = [int(np.prod(shape)) for shape in self.shapes]
        self.centre = tf.Variable(0.1 * tf.random.stateless_normal([sum(self.sizes)], (1, 2)))
        self.drift = tf.Variable(tf.zeros([sum(self.sizes)]))
        self.spread, self.rate = spread, rate

    def judge(self, genes, energy):
        """Scores of every net (first axis) for every tremor."""
        parts = tf.split(genes, self.sizes, axis=1)
        parts = [tf.reshape(p, (-1, *shape)) for p, shape in zip(parts, self.shapes)]
        hidden = tf.einsum("eb,nbh->neh", energy, parts[0]) + parts[1][:, None]
        return tf.einsum("neh,nhk->nek", tf.nn.relu(hidden), parts[2]) + parts[3][:, None]

    def price(self, genes, energy, kind):
        """Mean cost of the choices of every net."""
        choice = tf.argmax(self.judge(genes, energy), axis=-1, output_type=tf.int32)
        truth = tf.broadcast_to(kind[None], tf.shape(choice))
        return tf.reduce_mean(tf.gather_nd(self.costs, tf.stack([truth, choice], -1)), axis=1)

    @tf.function
    def generation(self):
        chosen = tf.random.uniform([EVENTS], 0, len(self.kind), tf.int32)
        energy, kind = tf.gather(self.energy, chosen), tf.gather(self.kind, chosen)
        step = tf.random.normal([PAIRS, sum(self.sizes)])
        both = tf.concat([step, -step], axis=0)
        prices = self.price(self.centre + self.spread * both, energy, kind)
        rank = tf.cast(tf.argsort(tf.argsort(prices)), tf.float32) / (2 * PAIRS - 1) - 0.5
        uphill = tf.linalg.matvec(both, rank, transpose_a=True) / (2 * PAIRS * self.spread)
        self.drift.assign(0.9 * self.drift + 0.1 * uphill)
        self.centre.assign(0.9995 * self.centre - self.rate * self.drift)
        return tf.reduce_mean(prices)

    @tf.function
    def cost_of_centre(self, energy, kind):
        return self.price(self.centre[None], energy, kind)[0]


if __name__ == "__main__":
    rng = np.random.default_rng(77)
    tf.random.set_seed(77)
    evolution = Evolution(*listen(30_000, rng))
    test = [tf.constant(part) for part in listen(5_000, rng)]
    for number in range(1, GENERATIONS + 1):
        price = evolution.generation()
        if number % 50 == 0:
            held_out = evolution.cost_of_centre(*test)
            print(f"generation {number}: {price:.3f}, held out {held_out:.3f}", flush=True)
