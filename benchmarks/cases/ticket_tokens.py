# cause: every line of text is taken apart in Python by a tf.py_function, a regular
#        expression for each word, and again in each epoch
# fix: turn the lines into arrays of numbers once, before training
# expect: 5 to 20 times faster an epoch
# form: a class that holds vocabulary, data and model; fit with tf.data; a TSV file
# report: https://github.com/huggingface/transformers/issues/10434
#         https://github.com/tensorflow/tensorflow/issues/38672
# lines: 51, 52, 53, 67, 73, 78
"""Send the tickets of a help desk to the team that answers them."""

import collections
import os
import re
import tempfile

import numpy as np
import tensorflow as tf

TEAMS = ["billing", "network", "accounts", "hardware"]
STEMS = {
    "billing": "invoice payment refund charge price receipt tax discount",
    "network": "router cable signal outage wireless speed packet firewall",
    "accounts": "password login profile email username locked reset verify",
    "hardware": "screen keyboard battery printer fan noise broken charger",
}
COMMON = "the a my is not when please since help today i we it on and still have with"


def write_tickets(path, tickets=6000):
    rng = np.random.default_rng(6)
    ends = ["", "s", "ing", "ed", "!", ",", "..."]
    with open(path, "w", encoding="utf-8") as file:
        for team in rng.integers(0, len(TEAMS), tickets):
            mine = STEMS[TEAMS[team]].split()
            words = rng.choice(COMMON.split() + mine, rng.integers(30, 70))
            text = " ".join(word + ends[rng.integers(7)] for word in words)
            file.write(f"{TEAMS[team]}\t{text.capitalize()}\n")


class TicketSorter:
    length = 64

    def __init__(self, path, batch_size=64):
        self.path = path
        self.batch_size = batch_size
        self.vocabulary = self.count_words()
        self.model = self.build()

    def clean(self, text):
        words = []
        for word in text.lower().split():
            word = re.sub(r"[^a-z0-9]+", "", word)
            word = re.sub(r"(ing|ed|s)$", "", word)
            if word:
                words.append(word)
        return words

    def count_words(self):
        counts = collections.Counter()
        with open(self.path, encoding="utf-8") as file:
            for line in file:
                counts.update(self.clean(line.split("\t")[1]))
        return {word: i + 2 for i, (word, _) in enumerate(counts.most_common(5000))}

    def encode(self, line):
        team, text = line.numpy().decode("utf-8").split("\t")
        numbers = [self.vocabulary.get(word, 1) for word in self.clean(text)]
        numbers = numbers[: self.length]
        numbers += [0] * (self.length - len(numbers))
        return np.array(numbers, "int32"), np.int32(TEAMS.index(team))

    def to_tensors(self, line):
        numbers, team = tf.py_function(self.encode, [line], [tf.int32, tf.int32])
        return tf.ensure_shape(numbers, [self.length]), tf.ensure_shape(team, [])

    def data(self):
        lines = tf.data.TextLineDataset(self.path).shuffle(6000)
        tickets = lines.map(self.to_tensors, num_parallel_calls=tf.data.AUTOTUNE)
        return tickets.batch(self.batch_size).prefetch(tf.data.AUTOTUNE)

    def build(self):
        model = tf.keras.Sequential()
        model.add(tf.keras.layers.Input((self.length,)))
        model.add(tf.keras.layers.Embedding(len(self.vocabulary) + 2, 32))
        model.add(tf.keras.layers.GlobalAveragePooling1D())
        model.add(tf.keras.layers.Dense(32, activation="relu"))
        model.add(tf.keras.layers.Dense(len(TEAMS), activation="softmax"))
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    def fit(self, epochs):
        return self.model.fit(self.data(), epochs=epochs, verbose=2)


if __name__ == "__main__":
    tsv = os.path.join(tempfile.mkdtemp(prefix="tickets_"), "tickets.tsv")
    write_tickets(tsv)
    TicketSorter(tsv).fit(epochs=22)
