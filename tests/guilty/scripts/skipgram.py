"""Train word vectors by skip-grams with negative sampling."""

import argparse
import csv
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf


def make_corpus(words, vocabulary, topics=40, seed=5):
    """A stream of word numbers: Zipf's law within topics that change slowly."""
    rng = np.random.default_rng(seed)
    rank = 1 / np.arange(1, vocabulary + 1)
    common = rng.choice(vocabulary, words, p=rank / rank.sum())
    topic = np.repeat(rng.integers(0, topics, words // 50 + 1), 50)[:words]
    special = (common * topics + topic) % vocabulary
    return np.where(rng.random(words) < 0.4, special, common).astype("int32")


def make_pairs(corpus, window, negatives, vocabulary, seed=6):
    """For each word one neighbour and some words drawn at random."""
    rng = np.random.default_rng(seed)
    offsets = rng.integers(1, window + 1, len(corpus)) * rng.choice(
        [-1, 1], len(corpus)
    )
    places = np.clip(np.arange(len(corpus)) + offsets, 0, len(corpus) - 1)
    noise = rng.integers(0, vocabulary, (len(corpus), negatives), dtype="int32")
    contexts = np.concatenate([corpus[places][:, None], noise], axis=1)
    labels = np.zeros(contexts.shape, "float32")
    labels[:, 0] = 1
    return corpus, contexts, labels


class SkipGram(keras.Model):
    """Two tables of vectors; a pair's score is their dot product."""

    def __init__(self, vocabulary, width):
        super().__init__()
        self.targets = keras.layers.Embedding(vocabulary, width, name="targets")
        self.contexts = keras.layers.Embedding(vocabulary, width, name="contexts")

    def call(self, pair):
        target, context = pair
        return tf.einsum("be,bce->bc", self.targets(target), self.contexts(context))


class VectorLog(keras.callbacks.Callback):
    """Keeps a file of how long the vectors are and how far they moved."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def on_train_begin(self, logs=None):
        self.write("w", ["step", "mean length", "mean move", "loss"])
        self.before = self.vectors()
        self.step = 0

    def vectors(self):
        return self.model.targets.get_weights()[0]

    def on_train_batch_end(self, batch, logs=None):
        now = self.vectors()
        length = np.linalg.norm(now, axis=1).mean()
        move = np.linalg.norm(now - self.before, axis=1).mean()
        self.write("a", [self.step, length, move, logs["loss"]])
        self.before = now
        self.step += 1

    def write(self, mode, row):
        with open(self.path, mode, newline="") as file:
            csv.writer(file).writerow(row)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--vocabulary", type=int, default=20_000)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--window", type=int, default=4)
    parser.add_argument("--negatives", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=15)
    args = parser.parse_args()

    corpus = make_corpus(args.words, args.vocabulary)
    targets, contexts, labels = make_pairs(
        corpus, args.window, args.negatives, args.vocabulary
    )
    # Whole batches are shuffled, which is enough for a corpus of this size.
    steps = args.words // args.batch_size
    targets, contexts, labels = (
        np.reshape(
            array[: steps * args.batch_size], (steps, args.batch_size, *array.shape[1:])
        )
        for array in (targets, contexts, labels)
    )
    dataset = tf.data.Dataset.from_tensor_slices(((targets, contexts), labels))
    dataset = dataset.shuffle(steps).prefetch(tf.data.AUTOTUNE)

    model = SkipGram(args.vocabulary, args.width)
    model((targets[0], contexts[0]))
    model.compile(
        optimizer=keras.optimizers.SGD(0.5),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
    )
    with tempfile.TemporaryDirectory() as folder:
        log = VectorLog(os.path.join(folder, "vectors.csv"))
        model.fit(dataset, epochs=args.epochs, callbacks=[log], verbose=2)


if __name__ == "__main__":
    main()
