"""Which frogs sing in a minute of night recording (several at once)."""

import argparse
import math

import keras
import numpy as np
from keras import layers

FROGS = ["tree", "marsh", "agile", "common", "midwife", "pool"]
BANDS, FRAMES = 64, 96


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--recordings", type=int, default=1200)
    parser.add_argument("--mix", type=float, default=0.3)
    return parser.parse_args()


def set_up_hardware():
    keras.utils.set_random_seed(8)
    print("computing in", keras.config.floatx())


def record_night(count, seed=3):
    """Log spectrograms: each frog calls in its own bands with its own rhythm."""
    rng = np.random.default_rng(seed)
    present = rng.random((count, len(FROGS))) < 0.3
    night = rng.normal(0, 0.6, (count, BANDS, FRAMES + 32)).astype("float32")
    frames = np.arange(FRAMES + 32)
    for index in range(count):
        for frog in np.flatnonzero(present[index]):
            low = 6 + 9 * frog + rng.integers(-2, 3)
            rhythm = np.sin(frames / (1.5 + 0.7 * frog) + rng.uniform(0, 6)) > 0.4
            night[index, low : low + 5] += rng.uniform(0.8, 2) * rhythm
    return night[..., None], present.astype("float32")


class NightClips(keras.utils.PyDataset):
    """Clips cut at random frames, some of them laid over another one."""

    def __init__(self, night, present, batch_size, mix, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.night, self.present = night, present
        self.batch_size, self.mix = batch_size, mix
        self.rng = np.random.default_rng(seed)
        self.order = self.rng.permutation(len(night))

    def __len__(self):
        return math.floor(len(self.night) / self.batch_size)

    def cut(self, rows):
        start = self.rng.integers(0, 32)
        return self.night[rows, :, start : start + FRAMES]

    def __getitem__(self, index):
        rows = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        clips, labels = self.cut(rows), self.present[rows]
        if self.rng.random() < self.mix:
            others = self.rng.permutation(len(self.night))[: len(rows)]
            clips = np.maximum(clips, self.cut(others))
            labels = np.maximum(labels, self.present[others])
        return clips, labels

    def on_epoch_end(self):
        self.order = self.rng.permutation(len(self.night))


def block(x, filters, stride):
    shortcut = layers.Conv2D(filters, 1, strides=stride, use_bias=False)(x)
    x = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    x = layers.ReLU()(x)
    x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(layers.Add()([x, shortcut]))


def build_listener():
    inputs = keras.Input((BANDS, FRAMES, 1))
    x = layers.Conv2D(8, 5, strides=2, padding="same", activation="relu")(inputs)
    for filters in (16, 32):
        x = block(x, filters, 2)
    x = layers.Permute((2, 1, 3))(x)
    x = layers.Reshape((x.shape[1], x.shape[2] * x.shape[3]))(x)
    x = layers.GRU(24)(x)
    x = layers.Dropout(0.2)(x)
    outputs = layers.Dense(len(FROGS), activation="sigmoid")(x)
    return keras.Model(inputs, outputs, name="listener")


def train(model, clips, epochs):
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.BinaryFocalCrossentropy(gamma=1.0),
        metrics=[keras.metrics.BinaryAccuracy(name="hits")],
    )
    schedule = keras.callbacks.LearningRateScheduler(
        lambda epoch: 1e-3 * 0.5 * (1 + math.cos(math.pi * epoch / epochs))
    )
    return model.fit(clips, epochs=epochs, callbacks=[schedule], verbose=2)


def main():
    arguments = parse_arguments()
    set_up_hardware()
    night, present = record_night(arguments.recordings)
    clips = NightClips(night, present, arguments.batch_size, arguments.mix)
    model = build_listener()
    history = train(model, clips, arguments.epochs)
    print("hits", round(history.history["hits"][-1], 3))


if __name__ == "__main__":
    main()
