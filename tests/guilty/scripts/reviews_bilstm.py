"""Train a bidirectional LSTM that tells good reviews from bad ones."""

import argparse
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SYLLABLES = ["ba", "co", "du", "fe", "gi", "ka", "lo", "mi", "nu", "pe", "ra", "so"]


def write_reviews(folder, count, seed=9):
    """Write reviews as text files, in one folder for each opinion.

    Most are a few lines long, some go on for pages.
    """
    rng = np.random.default_rng(seed)
    words = np.array(["".join(rng.choice(SYLLABLES, 3)) for _ in range(4000)])
    rank = 1 / np.arange(1, len(words) + 1)
    for label, name in enumerate(["neg", "pos"]):
        os.makedirs(os.path.join(folder, name))
        chances = np.roll(rank, 40 * label)
        lengths = rng.lognormal(3.7, 0.8, count // 2).clip(8, 500).astype(int)
        stream = rng.choice(words, lengths.sum(), p=chances / chances.sum())
        parts = np.split(stream, lengths.cumsum()[:-1])
        for number, chosen in enumerate(parts):
            with open(os.path.join(folder, name, f"{number}.txt"), "w") as file:
                file.write(" ".join(chosen) + ".\n")


def read_reviews(folder):
    texts, labels = [], []
    for label, name in enumerate(["neg", "pos"]):
        for file_name in sorted(os.listdir(os.path.join(folder, name))):
            with open(os.path.join(folder, name, file_name)) as file:
                texts.append(file.read())
            labels.append(label)
    return np.array(texts, object), np.array(labels, "float32")


def encode(texts, vocabulary):
    """The reviews as lists of the numbers of their words."""
    vectorize = layers.TextVectorization(vocabulary, ragged=True)
    vectorize.adapt(tf.data.Dataset.from_tensor_slices(texts).batch(256))
    return vectorize(tf.constant(texts)).numpy()


def build_model(vocabulary):
    model = keras.Sequential(
        [
            layers.Input((None,), dtype="int32"),
            layers.Embedding(vocabulary, 96, mask_zero=True),
            layers.Bidirectional(layers.LSTM(96)),
            layers.Dense(64, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reviews", type=int, default=12_000)
    parser.add_argument("--vocabulary", type=int, default=4000)
    parser.add_argument("--max-length", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        write_reviews(folder, args.reviews)
        texts, labels = read_reviews(folder)
    sequences = encode(texts, args.vocabulary)

    order = np.random.default_rng(0).permutation(len(sequences))
    sequences = [sequences[i] for i in order]
    labels = labels[order]
    inputs = keras.utils.pad_sequences(
        sequences, maxlen=args.max_length, padding="post", truncating="post"
    )
    dataset = tf.data.Dataset.from_tensor_slices((inputs, labels))
    dataset = dataset.shuffle(len(labels)).batch(args.batch_size)
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    model = build_model(args.vocabulary)
    model.fit(dataset, epochs=args.epochs)


if __name__ == "__main__":
    main()
