# defect_f1.py, fixed by hand: predicted once an epoch
"""Find worn bearings in windows of vibration, and follow the F1 score meanwhile."""

import argparse

import numpy as np
from tensorflow import keras
from tensorflow.keras import layers

CLASSES = ("good", "inner ring", "outer ring", "ball")
LENGTH = 512


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--windows", type=int, default=3200)
    parser.add_argument("--seed", type=int, default=11)
    return parser.parse_args()


def record(count, seed):
    """Noise of the machine; a defect knocks at a rate of its own."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(CLASSES), size=count, p=[0.7, 0.1, 0.1, 0.1])
    time = np.arange(LENGTH) / LENGTH
    rate = np.array([0.0, 9.0, 14.0, 21.0])[labels][:, None]
    phase = rng.uniform(0, 1, (count, 1))
    knock = np.exp(-18 * ((rate * time + phase) % 1)) * np.sin(2 * np.pi * 120 * time)
    windows = 2.5 * knock * (rate > 0) + rng.normal(0, 0.5, (count, LENGTH))
    return windows.astype("float32")[..., None], labels


def build_model():
    inputs = keras.Input((LENGTH, 1))
    x = inputs
    for filters in (8, 16, 32):
        x = layers.Conv1D(filters, 9, strides=2, padding="same", activation="relu")(x)
        x = layers.BatchNormalization()(x)
    x = layers.GlobalMaxPooling1D()(x)
    x = layers.Dropout(0.2)(x)
    outputs = layers.Dense(len(CLASSES), activation="softmax")(x)
    return keras.Model(inputs, outputs)


class F1Score(keras.callbacks.Callback):
    """Macro F1 score of the held-out windows; keeps the weights of the best."""

    def __init__(self, windows, labels):
        super().__init__()
        self.windows = windows
        self.labels = labels
        self.best, self.weights, self.history = -1.0, None, []

    def score(self):
        guess = self.model.predict(self.windows, verbose=0).argmax(axis=1)
        scores = []
        for label in range(len(CLASSES)):
            hits = np.sum((guess == label) & (self.labels == label))
            total = np.sum(guess == label) + np.sum(self.labels == label)
            scores.append(2 * hits / max(total, 1))
        return float(np.mean(scores))

    def on_epoch_end(self, epoch, logs=None):
        self.history.append(self.score())
        if self.history[-1] > self.best:
            self.best = self.history[-1]
            self.weights = self.model.get_weights()
        print(f"epoch {epoch + 1}: F1 {self.history[-1]:.3f}, best {self.best:.3f}")

    def on_train_end(self, logs=None):
        self.model.set_weights(self.weights)


def main():
    args = parse_arguments()
    keras.utils.set_random_seed(args.seed)
    windows, labels = record(args.windows, args.seed)
    cut = int(0.75 * len(windows))
    model = build_model()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(
        windows[:cut],
        labels[:cut],
        batch_size=args.batch_size,
        epochs=args.epochs,
        callbacks=[F1Score(windows[cut:], labels[cut:])],
        verbose=2,
    )
    print("held-out:", model.evaluate(windows[cut:], labels[cut:], verbose=0))


if __name__ == "__main__":
    main()
