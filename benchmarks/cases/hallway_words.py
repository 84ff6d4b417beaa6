# cause: Each clip is convolved directly with 6,400 taps, not by FFT.
# expect: 3.5 times as fast (each step or epoch)
# report: iver56/torch-audiomentations#152
# lines: 58, 65
"""Spot spoken commands that are recorded far from the microphone, in echoing rooms."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

RATE = 16_000
WORDS = ["yes", "no", "up", "down", "stop", "go"]
ECHO_SECONDS = 0.4
BATCH = 16


def speak(count, seed=5):
    """One second for each word: a few gliding tones with an envelope."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(WORDS), count)
    time = np.arange(RATE) / RATE
    clips = np.zeros((count, RATE), "int16")
    for clip, label in zip(clips, labels):
        start = 200 + 120 * label + rng.normal(0, 15)
        glide = (-1) ** label * 150 * time
        voice = np.sin(2 * np.pi * (start + glide) * time)
        voice += 0.4 * np.sin(4 * np.pi * (start + glide) * time)
        envelope = np.exp(-(((time - rng.uniform(0.3, 0.7)) / 0.2) ** 2))
        clip[:] = 9000 * voice * envelope
    return clips, labels


def make_rooms(count=24, seed=6):
    """Impulse responses: noise that dies away, slower in larger rooms."""
    rng = np.random.default_rng(seed)
    taps = int(ECHO_SECONDS * RATE)
    decay = rng.uniform(0.05, 0.15, (count, 1))
    rooms = rng.normal(size=(count, taps)) * np.exp(-np.arange(taps) / RATE / decay)
    rooms[:, 0] = 8.0
    return (rooms / np.linalg.norm(rooms, axis=1, keepdims=True)).astype("float32")


class FarField(keras.utils.PyDataset):
    def __init__(self, clips, labels, rooms, **kwargs):
        super().__init__(**kwargs)
        self.clips, self.labels, self.rooms = clips, labels, rooms
        self.rng = np.random.default_rng(0)
        self.order = np.arange(len(labels))

    def __len__(self):
        return len(self.order) // BATCH

    def place(self, clip):
        """The clip as it sounds in one of the rooms, with noise and another loudness."""
        sound = clip.astype("float32") / 32768
        room = self.rooms[self.rng.integers(len(self.rooms))]
        sound = np.convolve(sound, room)[:RATE]
        sound = np.roll(sound, self.rng.integers(-1600, 1600))
        sound = sound + 0.003 * self.rng.standard_normal(RATE, dtype="float32")
        return sound * 10 ** (self.rng.uniform(-6, 6) / 20)

    def __getitem__(self, index):
        rows = self.order[index * BATCH : (index + 1) * BATCH]
        sounds = np.stack([self.place(clip) for clip in self.clips[rows]])
        return sounds.astype("float32"), self.labels[rows]

    def on_epoch_end(self):
        self.rng.shuffle(self.order)


class LogMel(layers.Layer):
    def build(self, shape):
        self.mel = tf.signal.linear_to_mel_weight_matrix(40, 257, RATE, 60, 7600)

    def call(self, sound):
        spectrum = tf.abs(tf.signal.stft(sound, 512, 256))
        return tf.math.log(tf.matmul(spectrum, self.mel) + 1e-4)


def build_model():
    sound = keras.Input((RATE,))
    x = layers.BatchNormalization()(LogMel()(sound))
    for filters in (32, 48, 64):
        x = layers.Conv1D(filters, 5, padding="same", activation="relu")(x)
        x = layers.MaxPooling1D(2)(x)
    x = layers.Dropout(0.3)(layers.GlobalAveragePooling1D()(x))
    model = keras.Model(sound, layers.Dense(len(WORDS), activation="softmax")(x))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


if __name__ == "__main__":
    clips, labels = speak(1280)
    training = FarField(clips, labels, make_rooms())
    build_model().fit(training, epochs=60, verbose=2)
