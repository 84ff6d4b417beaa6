"""Train a small transformer that writes text like the text that it read."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

CONTEXT = 128
BATCH_SIZE = 32
WIDTH = 256
HEADS = 4
BLOCKS = 4
EPOCHS = 50
STEPS = 500
ALPHABET = "abcdefghijklmnopqrstuvwxyz .,\n"


def make_text(length, seed=29):
    """A long text of made-up words in sentences, as numbers of characters."""
    rng = np.random.default_rng(seed)
    words = []
    for _ in range(3000):
        word = rng.integers(0, 26, rng.integers(2, 9))
        words.append("".join(ALPHABET[i] for i in word))
    rank = 1 / np.arange(1, len(words) + 1)
    chosen = rng.choice(words, length // 5, p=rank / rank.sum())
    ends = rng.choice([" ", ", ", ". ", "\n"], len(chosen), p=[0.8, 0.1, 0.08, 0.02])
    text = "".join(np.char.add(chosen, ends))
    return np.array([ALPHABET.index(letter) for letter in text], "int32")


def make_dataset(text):
    """Pieces of the text and the same pieces, one character on."""
    count = (len(text) - 1) // CONTEXT
    inputs = text[: count * CONTEXT].reshape(count, CONTEXT)
    targets = text[1 : count * CONTEXT + 1].reshape(count, CONTEXT)
    dataset = tf.data.Dataset.from_tensor_slices((inputs, targets))
    dataset = dataset.shuffle(count).repeat().batch(BATCH_SIZE, drop_remainder=True)
    return dataset.prefetch(tf.data.AUTOTUNE)


class TokenAndPosition(layers.Layer):
    def __init__(self):
        super().__init__()
        self.tokens = layers.Embedding(len(ALPHABET), WIDTH)
        self.positions = layers.Embedding(CONTEXT, WIDTH)

    def call(self, tokens):
        return self.tokens(tokens) + self.positions(ops.arange(CONTEXT))


def block(x):
    seen = layers.LayerNormalization()(x)
    attention = layers.MultiHeadAttention(HEADS, WIDTH // HEADS)
    x = x + attention(seen, seen, use_causal_mask=True)
    hidden = layers.LayerNormalization()(x)
    hidden = layers.Dense(4 * WIDTH, activation="relu")(hidden)
    return x + layers.Dense(WIDTH)(hidden)


def build_gpt():
    tokens = keras.Input((CONTEXT,), dtype="int32")
    x = TokenAndPosition()(tokens)
    for _ in range(BLOCKS):
        x = block(x)
    x = layers.LayerNormalization()(x)
    return keras.Model(tokens, layers.Dense(len(ALPHABET))(x))


def main():
    dataset = make_dataset(make_text(1_500_000))
    model = build_gpt()
    model.compile(
        optimizer=keras.optimizers.AdamW(3e-4),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(dataset, epochs=EPOCHS, steps_per_epoch=STEPS)


if __name__ == "__main__":
    main()
