"""Recommend mountain huts to walkers: matrix factorisation trained on pairs of booked and passed huts."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

WALKERS, HUTS, FACTORS = 240_000, 60_000, 32
BOOKINGS, BATCH = 600_000, 2048
STEPS, REPORT = 20_000, 50


def make_bookings(seed=8):
    """Walkers keep to a region, and famous huts are booked more often."""
    rng = np.random.default_rng(seed)
    walkers = rng.integers(0, WALKERS, BOOKINGS)
    region = (walkers * 7919) % 40
    fame = (rng.random(BOOKINGS) ** 2 * (HUTS // 40)).astype("int64")
    anywhere = rng.integers(0, HUTS, BOOKINGS)
    huts = np.where(rng.random(BOOKINGS) < 0.8, fame * 40 + region, anywhere)
    return walkers.astype("int32"), huts.astype("int32")


class HutRanker(keras.Model):
    def __init__(self, decay=1e-6, **kwargs):
        super().__init__(**kwargs)
        small = keras.initializers.RandomNormal(stddev=0.05)
        self.decay = decay
        self.walker = layers.Embedding(WALKERS, FACTORS, embeddings_initializer=small, name="walker")
        self.hut = layers.Embedding(HUTS, FACTORS, embeddings_initializer=small, name="hut")
        self.fame = layers.Embedding(HUTS, 1, embeddings_initializer="zeros", name="fame")

    def call(self, inputs):
        walkers, huts = inputs
        taste = tf.reduce_sum(self.walker(walkers) * self.hut(huts), axis=-1)
        return taste + tf.squeeze(self.fame(huts), -1)


def pairwise_loss(booked, passed):
    return -tf.reduce_mean(tf.math.log_sigmoid(booked - passed))


def batches(walkers, huts):
    data = tf.data.Dataset.from_tensor_slices((walkers, huts)).batch(BATCH, drop_remainder=True)
    data = data.cache().shuffle(400).repeat()
    return data.prefetch(2)


def hit_rate(model, walkers, huts, among=200):
    """How often the booked hut is in the first ten of two hundred."""
    rng = np.random.default_rng(0)
    others = rng.integers(0, HUTS, (len(walkers), among - 1))
    shown = np.concatenate([huts[:, None], others], axis=1).astype("int32")
    repeated = np.repeat(walkers[:, None], among, axis=1)
    scores = model((tf.constant(repeated), tf.constant(shown))).numpy()
    return float(np.mean((scores > scores[:, :1]).sum(axis=1) < 10))


def main():
    walkers, huts = make_bookings()
    test_walkers, test_huts = walkers[-500:], huts[-500:]
    model = HutRanker()
    model((walkers[:2], huts[:2]))
    optimizer = keras.optimizers.SGD(5.0)
    optimizer.build(model.trainable_variables)

    @tf.function
    def train_step(walker, hut):
        passed = tf.random.uniform(tf.shape(hut), 0, HUTS, tf.int32)
        with tf.GradientTape() as tape:
            loss = pairwise_loss(model((walker, hut)), model((walker, passed)))
            rows = model.walker(walker), model.hut(hut), model.hut(passed)
            loss += model.decay * sum(tf.reduce_sum(row ** 2) for row in rows)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    seen = keras.metrics.Mean()
    for step, (walker, hut) in enumerate(batches(walkers[:-500], huts[:-500]).take(STEPS), 1):
        seen.update_state(train_step(walker, hut))
        if step % REPORT == 0:
            print(f"step {step} loss {float(seen.result()):.4f}", flush=True)
            seen.reset_state()
        if step % 1000 == 0:
            print(f"hits at 10: {hit_rate(model, test_walkers, test_huts):.3f}", flush=True)


if __name__ == "__main__":
    main()
