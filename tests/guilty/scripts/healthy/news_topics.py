"""Train a convolutional network that sorts short news by their topic."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

TOPICS = ["politics", "sport", "business", "science"]
VOCABULARY = 8000
LENGTH = 60
BATCH_SIZE = 128
EPOCHS = 15


def write_news(count, seed=21):
    """Headlines and first lines, of words that are common in their topic."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = np.array(["".join(rng.choice(letters, 6)) for _ in range(10_000)])
    rank = 1 / np.arange(1, len(words) + 1)
    texts, labels = [], []
    for label in range(len(TOPICS)):
        chances = rank[rng.permutation(len(words))] + rank
        chosen = rng.choice(words, (count // 4, 45), p=chances / chances.sum())
        texts.extend(" ".join(row) for row in chosen)
        labels.extend([label] * len(chosen))
    order = rng.permutation(len(texts))
    return np.array(texts)[order], np.array(labels, "int32")[order]


def make_dataset(texts, labels, vectorize, training):
    dataset = tf.data.Dataset.from_tensor_slices((texts, labels))
    dataset = dataset.batch(BATCH_SIZE)
    dataset = dataset.map(
        lambda text, label: (vectorize(text), label),
        num_parallel_calls=tf.data.AUTOTUNE,
    ).cache()
    if training:
        dataset = dataset.shuffle(len(dataset))
    return dataset.prefetch(tf.data.AUTOTUNE)


def make_model():
    inputs = keras.Input((LENGTH,), dtype="int32")
    x = layers.Embedding(VOCABULARY, 64)(inputs)
    x = layers.SpatialDropout1D(0.2)(x)
    x = layers.Conv1D(128, 5, activation="relu")(x)
    x = layers.GlobalMaxPooling1D()(x)
    x = layers.Dense(64, activation="relu")(x)
    outputs = layers.Dense(len(TOPICS), activation="softmax")(x)
    model = keras.Model(inputs, outputs)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main():
    texts, labels = write_news(40_000)
    split = int(0.9 * len(texts))
    vectorize = layers.TextVectorization(VOCABULARY, output_sequence_length=LENGTH)
    vectorize.adapt(texts[:split], batch_size=1024)
    train = make_dataset(texts[:split], labels[:split], vectorize, training=True)
    test = make_dataset(texts[split:], labels[split:], vectorize, training=False)
    model = make_model()
    model.fit(train, epochs=EPOCHS, validation_data=test)


if __name__ == "__main__":
    main()
