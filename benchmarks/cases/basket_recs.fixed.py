# basket_recs.py, fixed by hand: drawn for the whole batch, ones set by index
"""Recommend groceries that go with what is in the basket already."""

import json
import pathlib
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers

ITEMS = 6000
BASKETS = 6000
NEGATIVES = 10
BATCH_SIZE = 64
EPOCHS = 30


def write_baskets(path):
    rng = np.random.default_rng(19)
    popularity = 1 / np.arange(1, ITEMS + 1) ** 0.8
    steps = np.cumsum(popularity / popularity.sum())
    with open(path, "w") as file:
        for _ in range(BASKETS):
            drawn = np.searchsorted(steps, rng.random(rng.integers(15, 40)))
            basket = np.unique(np.minimum(drawn, ITEMS - 1))
            file.write(json.dumps(basket.tolist()) + "\n")


def read_baskets(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def item_popularity(baskets):
    counts = np.bincount(np.concatenate(baskets), minlength=ITEMS) + 1.0
    return counts / counts.sum()


def make_batch(baskets, summed, rng):
    contents = np.zeros((len(baskets), ITEMS), "float32")
    candidates = np.empty((len(baskets), 1 + NEGATIVES), "int32")
    drawn = np.searchsorted(summed, rng.random((len(baskets), NEGATIVES)))
    candidates[:, 1:] = np.minimum(drawn, ITEMS - 1)
    for i, basket in enumerate(baskets):
        hidden = rng.integers(len(basket))
        contents[i, basket] = 1
        contents[i, basket[hidden]] = 0
        candidates[i, 0] = basket[hidden]
    return contents, candidates


class Recommender(keras.Model):
    def __init__(self, size=32):
        super().__init__()
        self.hidden = layers.Dense(size, activation="relu")
        self.basket = layers.Dense(size)
        self.items = layers.Embedding(ITEMS, size)

    def call(self, contents, candidates):
        basket = self.basket(self.hidden(contents))
        return tf.einsum("bd,bnd->bn", basket, self.items(candidates))


def main():
    path = pathlib.Path(tempfile.mkdtemp(prefix="baskets-")) / "baskets.jsonl"
    write_baskets(path)
    baskets = read_baskets(path)
    summed = np.cumsum(item_popularity(baskets))
    rng = np.random.default_rng(3)
    model = Recommender()
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)

    @tf.function(reduce_retracing=True)
    def train_step(contents, candidates):
        with tf.GradientTape() as tape:
            scores = model(contents, candidates)
            first = tf.zeros(tf.shape(scores)[0], tf.int32)
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(first, scores)
            )
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    for epoch in range(EPOCHS):
        order = rng.permutation(len(baskets))
        losses = []
        for start in range(0, len(order) - BATCH_SIZE + 1, BATCH_SIZE):
            chosen = [baskets[i] for i in order[start : start + BATCH_SIZE]]
            contents, candidates = make_batch(chosen, summed, rng)
            losses.append(train_step(contents, candidates))
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}", flush=True)


if __name__ == "__main__":
    main()
