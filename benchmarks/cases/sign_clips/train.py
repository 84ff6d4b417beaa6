# cause: a layer calls its dense layers once for each frame of a clip in a Python loop,
#        so that a step consists of thousands of tiny operations forward and backward
# fix: call the dense layers once on all frames; they act on the last axis anyway
# expect: 2 to 6 times faster a step, and a tenth of the time to trace
# form: train.py with its layers in helpers.py beside it, clips as .npy files, tf.data,
#       fit
# report: https://github.com/tensorflow/tensorflow/issues/39076
#         https://github.com/keras-team/keras/pull/1799
# lines: 49, helpers.py:20-23
"""Tell signs of sign language apart by the joints of the hands in short clips."""

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from helpers import FrameEncoder
from tensorflow import keras
from tensorflow.keras import layers

FRAMES, JOINTS = 96, 42
SIGNS = 12
EPOCHS = 12
BATCH = 32


def film(folder, seed=8):
    """One file of clips for each sign, as a camera with a hand tracker gives them."""
    rng = np.random.default_rng(seed)
    time = np.linspace(0, 2 * np.pi, FRAMES)[None, :, None]
    for sign in range(SIGNS):
        speed = rng.uniform(0.5, 3, (1, 1, 2 * JOINTS))
        shift = rng.uniform(0, 6, (1, 1, 2 * JOINTS))
        clips = np.sin(speed * time + shift + rng.normal(0, 0.5, (200, 1, 1)))
        clips = clips + rng.normal(0, 0.6, (200, FRAMES, 2 * JOINTS))
        np.save(folder / f"sign_{sign:02d}.npy", clips.astype("float32"))


def load(folder):
    clips, labels = [], []
    for path in sorted(folder.glob("sign_*.npy")):
        clips.append(np.load(path))
        labels += [int(path.stem[-2:])] * len(clips[-1])
    return np.concatenate(clips), np.array(labels)


def build_model():
    inputs = keras.Input((FRAMES, 2 * JOINTS))
    x = FrameEncoder(units=32, frames=FRAMES)(inputs)
    x = layers.Conv1D(48, 5, strides=2, activation="relu")(x)
    x = layers.Conv1D(48, 5, strides=2, activation="relu")(x)
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(inputs, layers.Dense(SIGNS, activation="softmax")(x))


def main():
    keras.utils.set_random_seed(8)
    with tempfile.TemporaryDirectory() as name:
        film(Path(name))
        clips, labels = load(Path(name))
    order = np.random.default_rng(1).permutation(len(clips))
    clips, labels = clips[order], labels[order]
    cut = int(0.85 * len(clips))
    train = tf.data.Dataset.from_tensor_slices((clips[:cut], labels[:cut]))
    train = train.shuffle(cut).batch(BATCH).prefetch(tf.data.AUTOTUNE)
    test = tf.data.Dataset.from_tensor_slices((clips[cut:], labels[cut:])).batch(BATCH)
    model = build_model()
    model.compile(
        optimizer=keras.optimizers.Adam(5e-4),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    model.fit(train, validation_data=test, epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
