# cause: the projection to 16,000 words is made for all 48 positions, and 6 of them are
#        gathered and scored
# fix: gather first, then project
# report: https://github.com/huggingface/transformers/issues/3830
# lines: 78, 79
"""Pre-train a small encoder on shop baskets: some items are hidden and guessed from the rest."""
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

ITEMS = 16000
PAD, HIDDEN_ITEM, FIRST = 0, 1, 2
LENGTH = 48
HIDE = 6
WIDTH = 96
BASKETS = 1280
BATCH = 32
EPOCHS = 8


def make_baskets(seed=3):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.arange(FIRST, ITEMS)).reshape(-1, 38)
    baskets = np.full((BASKETS, LENGTH), PAD, np.int32)
    for i in range(BASKETS):
        n = rng.integers(LENGTH - 12, LENGTH + 1)
        chosen = groups[rng.integers(0, len(groups), 2)].ravel()
        # popular items of a group come first
        rank = np.minimum(rng.geometric(0.06, n) - 1, len(chosen) - 1)
        baskets[i, :n] = chosen[rank]
    return baskets


def hide_items(baskets, seed=5):
    """Hide HIDE items per basket. Returns inputs, positions and the items that were there."""
    rng = np.random.default_rng(seed)
    inputs = baskets.copy()
    positions = np.zeros((len(baskets), HIDE), np.int32)
    for i, row in enumerate(baskets):
        filled = np.flatnonzero(row != PAD)
        positions[i] = np.sort(rng.choice(filled, HIDE, replace=False))
    targets = np.take_along_axis(baskets, positions, axis=1)
    np.put_along_axis(inputs, positions, HIDDEN_ITEM, axis=1)
    return inputs, positions, targets


class Block(layers.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.attend = layers.MultiHeadAttention(heads, width // heads)
        self.norm1 = layers.LayerNormalization()
        self.norm2 = layers.LayerNormalization()
        self.wide = layers.Dense(width * 2, activation="gelu")
        self.narrow = layers.Dense(width)

    def call(self, x, seen):
        x = self.norm1(x + self.attend(x, x, attention_mask=seen[:, None, :]))
        return self.norm2(x + self.narrow(self.wide(x)))


class BasketModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = layers.Embedding(ITEMS, WIDTH)
        self.place = layers.Embedding(LENGTH, WIDTH)
        self.blocks = [Block(WIDTH, 4) for _ in range(2)]
        self.to_items = layers.Dense(ITEMS)

    def call(self, inputs):
        ids, positions = inputs["ids"], inputs["positions"]
        seen = tf.not_equal(ids, PAD)
        x = self.embed(ids) + self.place(tf.range(LENGTH))
        for block in self.blocks:
            x = block(x, seen)
        scores = self.to_items(x)
        return tf.gather(scores, positions, batch_dims=1)


class EpochClock(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.t = time.time()

    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch + 1}: {time.time() - self.t:.1f}s loss {logs['loss']:.3f} top50 {logs['top50']:.3f}", flush=True)


def main():
    keras.utils.set_random_seed(1)
    baskets = make_baskets()
    ids, positions, targets = hide_items(baskets)
    data = tf.data.Dataset.from_tensor_slices(({"ids": ids, "positions": positions}, targets))
    data = data.shuffle(BASKETS, seed=2).batch(BATCH, drop_remainder=True).prefetch(2)

    model = BasketModel()
    model.compile(
        optimizer=keras.optimizers.SGD(0.5, momentum=0.9),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseTopKCategoricalAccuracy(50, name="top50")],
    )
    model.fit(data, epochs=EPOCHS, verbose=0, callbacks=[EpochClock()])

    vectors = model.embed.get_weights()[0]
    print("item vectors", vectors.shape, "mean length", round(float(np.linalg.norm(vectors, axis=1).mean()), 3))


if __name__ == "__main__":
    main()
