# cause: `tracemalloc` in a callback traces every allocation of Python
# expect: 2.5 times as fast a step
# report: https://github.com/huggingface/peft/pull/1126
# lines: 83
"""Date old letters by their wording: which of eight decades was a letter written in?"""
import re
import tracemalloc

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

DECADES, WORDS, LONGEST = 8, 6000, 160
LETTERS, BATCH, EPOCHS = 3000, 48, 200
WORD = re.compile(r"[a-z]+|[.,;]")


def write_letters(seed=31):
    """Letters whose words come in and out of fashion."""
    rng = np.random.default_rng(seed)
    sounds = ["ba", "co", "din", "el", "far", "gri", "ho", "il", "kan", "lo", "mer", "nu", "or", "pel", "ri", "so"]
    words = np.array(["".join(rng.choice(sounds, rng.integers(1, 5))) for _ in range(WORDS)])
    fashion = rng.integers(0, DECADES, WORDS)
    by_decade = [np.flatnonzero(np.abs(fashion - decade) < 3) for decade in range(DECADES)]
    decades = rng.integers(0, DECADES, LETTERS)
    letters = []
    for decade in decades:
        length = rng.integers(90, 170)
        pool = np.where(rng.random(length) < 0.2, rng.choice(by_decade[decade], length),
                        rng.integers(0, WORDS, length))
        text = words[pool].astype(object)
        text[::9] += ","
        text[::23] += "."
        letters.append(" ".join(text).capitalize())
    return letters, decades.astype("int32")


class Vocabulary:
    def __init__(self, letters):
        counts = {}
        for letter in letters:
            for word in WORD.findall(letter.lower()):
                counts[word] = counts.get(word, 0) + 1
        kept = sorted(word for word, count in counts.items() if count > 2)
        self.numbers = {word: number for number, word in enumerate(kept, 2)}

    def __len__(self):
        return len(self.numbers) + 2

    def encode(self, letter):
        words = WORD.findall(letter.lower())[:LONGEST]
        return [self.numbers.get(word, 1) for word in words]


class LetterBatches(keras.utils.PyDataset):
    """Encodes the letters of a batch, with some of their words blotted out."""

    def __init__(self, letters, decades, vocabulary, blots=0.0, **kwargs):
        super().__init__(**kwargs)
        self.letters, self.decades, self.vocabulary = letters, decades, vocabulary
        self.blots, self.rng = blots, np.random.default_rng(3)
        self.order = np.arange(len(letters))

    def __len__(self):
        return len(self.letters) // BATCH

    def __getitem__(self, index):
        rows = self.order[index * BATCH:(index + 1) * BATCH]
        page = np.zeros((BATCH, LONGEST), "int32")
        for line, row in zip(page, rows):
            numbers = self.vocabulary.encode(self.letters[row])
            line[:len(numbers)] = numbers
        page[self.rng.random(page.shape) < self.blots] = 1
        return page, self.decades[rows]

    def on_epoch_end(self):
        self.rng.shuffle(self.order)


class MemoryLog(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        tracemalloc.start(10)

    def on_epoch_end(self, epoch, logs=None):
        now, peak = tracemalloc.get_traced_memory()
        print(f"epoch {epoch}: {now / 2**20:.1f} MB, at most {peak / 2**20:.1f} MB", flush=True)


def build_model(words):
    inputs = keras.Input((LONGEST,), dtype="int32")
    x = layers.Embedding(words, 32)(inputs)
    x = layers.SpatialDropout1D(0.1)(x)
    x = layers.Conv1D(32, 5, activation="relu", padding="same")(x)
    x = layers.GlobalMaxPooling1D()(x)
    x = layers.Dense(32, activation="relu")(x)
    model = keras.Model(inputs, layers.Dense(DECADES, activation="softmax")(x))
    model.compile(optimizer=keras.optimizers.Adam(1e-3),
                  loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main():
    letters, decades = write_letters()
    cut = LETTERS * 9 // 10
    vocabulary = Vocabulary(letters[:cut])
    train = LetterBatches(letters[:cut], decades[:cut], vocabulary, blots=0.05)
    test = LetterBatches(letters[cut:], decades[cut:], vocabulary)
    model = build_model(len(vocabulary))
    model.fit(train, validation_data=test, epochs=EPOCHS, verbose=2, callbacks=[MemoryLog()])


if __name__ == "__main__":
    main()
