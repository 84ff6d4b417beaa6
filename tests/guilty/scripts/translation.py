"""Train a small transformer that translates sentences between two toy languages."""

import time

import numpy as np
import tensorflow as tf
from tensorflow import keras

VOCABULARY = 2000
D_MODEL = 64
HEADS = 4
LAYERS = 1
BATCH = 16
EPOCHS = 10
SENTENCES = 20_000
PAD, START, END = 0, 1, 2


def make_sentences(count, seed=0):
    """Pairs of sentences: the translation reverses phrases and doubles some words."""
    rng = np.random.default_rng(seed)
    rank = 1 / np.arange(3, VOCABULARY) ** 0.8
    pairs = []
    for _ in range(count):
        length = int(rng.gamma(4, 5)) + 4
        source = rng.choice(np.arange(3, VOCABULARY), length, p=rank / rank.sum())
        phrases = [source[i : i + 3][::-1] for i in range(0, length, 3)]
        target = np.concatenate(phrases)
        target = np.repeat(target, 1 + (target % 7 == 0))
        pairs.append((source, np.concatenate([[START], target, [END]])))
    return pairs


def pad(sequences):
    """Fill each sentence of a batch to the longest among them."""
    padded = np.full((len(sequences), max(map(len, sequences))), PAD, "int32")
    for row, sequence in zip(padded, sequences, strict=True):
        row[: len(sequence)] = sequence
    return padded


def batches(pairs, rng):
    """One pass over the sentences in a new order."""
    order = rng.permutation(len(pairs))
    for first in range(0, len(pairs) - BATCH + 1, BATCH):
        chosen = [pairs[i] for i in order[first : first + BATCH]]
        sources, targets = zip(*chosen, strict=True)
        yield pad(sources), pad(targets)


class Embedding(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.tokens = keras.layers.Embedding(VOCABULARY, D_MODEL)
        self.positions = keras.layers.Embedding(512, D_MODEL)

    def call(self, tokens):
        places = tf.range(tf.shape(tokens)[1])
        return self.tokens(tokens) + self.positions(places)


class Block(keras.layers.Layer):
    """Self-attention, attention to the source where there is one, and a small MLP."""

    def __init__(self, causal):
        super().__init__()
        self.causal = causal
        self.attention = keras.layers.MultiHeadAttention(HEADS, D_MODEL // HEADS)
        self.cross = keras.layers.MultiHeadAttention(HEADS, D_MODEL // HEADS)
        self.mlp = keras.Sequential(
            [
                keras.layers.Dense(4 * D_MODEL, activation="relu"),
                keras.layers.Dense(D_MODEL),
                keras.layers.Dropout(0.1),
            ]
        )
        self.norms = [keras.layers.LayerNormalization() for _ in range(3)]

    def call(self, x, keys, source=None, source_keys=None, training=False):
        seen = self.attention(
            x,
            x,
            attention_mask=keys[:, None, :],
            use_causal_mask=self.causal,
            training=training,
        )
        x = self.norms[0](x + seen)
        if source is not None:
            seen = self.cross(x, source, attention_mask=source_keys[:, None, :])
            x = self.norms[1](x + seen)
        return self.norms[2](x + self.mlp(x, training=training))


class Translator(keras.Model):
    def __init__(self):
        super().__init__()
        self.source_embedding = Embedding()
        self.target_embedding = Embedding()
        self.encoder = [Block(causal=False) for _ in range(LAYERS)]
        self.decoder = [Block(causal=True) for _ in range(LAYERS)]
        self.head = keras.layers.Dense(VOCABULARY)

    def call(self, inputs, training=False):
        source, target = inputs
        source_keys, target_keys = source != PAD, target != PAD
        x = self.source_embedding(source)
        for block in self.encoder:
            x = block(x, source_keys, training=training)
        y = self.target_embedding(target)
        for block in self.decoder:
            y = block(y, target_keys, x, source_keys, training=training)
        return self.head(y)


translator = Translator()
optimizer = keras.optimizers.Adam(1e-3, beta_2=0.98, epsilon=1e-9)
cross_entropy = keras.losses.SparseCategoricalCrossentropy(
    from_logits=True, ignore_class=PAD
)
mean_loss = keras.metrics.Mean()


@tf.function
def train_step(source, target):
    with tf.GradientTape() as tape:
        logits = translator((source, target[:, :-1]), training=True)
        loss = cross_entropy(target[:, 1:], logits)
    gradients = tape.gradient(loss, translator.trainable_variables)
    optimizer.apply_gradients(
        zip(gradients, translator.trainable_variables, strict=True)
    )
    mean_loss(loss)


def main():
    pairs = make_sentences(SENTENCES)
    rng = np.random.default_rng(1)
    for epoch in range(EPOCHS):
        start = time.time()
        mean_loss.reset_state()
        for step, (source, target) in enumerate(batches(pairs, rng)):
            train_step(tf.constant(source), tf.constant(target))
            if step % 50 == 0:
                print(f"epoch {epoch + 1} batch {step} loss {mean_loss.result():.4f}")
        print(f"epoch {epoch + 1} took {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
