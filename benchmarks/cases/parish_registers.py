# cause: none
"""A small language model of old parish registers, letter by letter."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

LETTERS = "abcdefghijklmnopqrstuvwxyz ,.;0123456789\n"
LENGTH, WIDTH, HEADS, BLOCKS = 96, 128, 4, 2
BATCH, EPOCHS = 32, 120


def write_register(entries=9000, seed=41):
    rng = np.random.default_rng(seed)
    names = ["anna", "jacob", "maria", "peter", "dorothea", "hans", "ursula", "conrad", "agnes", "ulrich"]
    trades = ["miller", "smith", "weaver", "carter", "mason", "fisher", "baker"]
    places = ["by the bridge", "of the upper mill", "at the gate", "of the old tower"]
    lines = []
    for year in np.sort(rng.integers(1640, 1790, entries)):
        kind = rng.choice(["baptised", "married", "buried"])
        lines.append(f"{year}, {kind}: {rng.choice(names)}, child of {rng.choice(names)} the "
                     f"{rng.choice(trades)} {rng.choice(places)}; {rng.integers(1, 29)}.{rng.integers(1, 13)}.")
    return "\n".join(lines).replace(":", ",")


def encode(text):
    table = {letter: number for number, letter in enumerate(LETTERS)}
    return np.array([table[letter] for letter in text], "int32")


def windows(codes, shuffle=True):
    count = (len(codes) - 1) // LENGTH
    pages = codes[:count * LENGTH].reshape(count, LENGTH), codes[1:count * LENGTH + 1].reshape(count, LENGTH)
    data = tf.data.Dataset.from_tensor_slices(pages)
    if shuffle:
        data = data.shuffle(count, reshuffle_each_iteration=True)
    return data.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


class Positions(layers.Layer):
    def build(self, input_shape):
        self.table = self.add_weight(shape=(LENGTH, input_shape[-1]), name="table")

    def call(self, x):
        return x + self.table[:tf.shape(x)[1]]


def build_model():
    inputs = keras.Input((LENGTH,), dtype="int32")
    x = Positions()(layers.Embedding(len(LETTERS), WIDTH)(inputs))
    for _ in range(BLOCKS):
        y = layers.LayerNormalization()(x)
        y = layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(y, y, use_causal_mask=True)
        x = layers.Add()([x, y])
        y = layers.LayerNormalization()(x)
        y = layers.Dense(WIDTH * 4, activation="gelu")(y)
        x = layers.Add()([x, layers.Dense(WIDTH)(y)])
    return keras.Model(inputs, layers.Dense(len(LETTERS))(layers.LayerNormalization()(x)))


class Sample(keras.callbacks.Callback):
    """Now and then, writes a few letters on from the start of an entry."""

    def __init__(self, start="1701, baptised, "):
        super().__init__()
        self.start = start

    def on_epoch_end(self, epoch, logs=None):
        if epoch % 10 != 9:
            return
        codes = list(encode(self.start))
        for _ in range(20):
            page = np.zeros((1, LENGTH), "int32")
            page[0, :len(codes)] = codes
            logits = self.model.predict_on_batch(page)[0, len(codes) - 1]
            codes.append(int(logits.argmax()))
        print("".join(LETTERS[code] for code in codes), flush=True)


def main():
    codes = encode(write_register())
    cut = len(codes) * 19 // 20
    model = build_model()
    rate = keras.optimizers.schedules.CosineDecay(1e-3, EPOCHS * (cut // LENGTH // BATCH), warmup_steps=100, warmup_target=2e-3)
    model.compile(optimizer=keras.optimizers.Adam(rate, clipnorm=1.0),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    with tempfile.TemporaryDirectory() as folder:
        best = keras.callbacks.ModelCheckpoint(os.path.join(folder, "best.weights.h5"), monitor="val_loss",
                                               save_best_only=True, save_weights_only=True)
        model.fit(windows(codes[:cut]), validation_data=windows(codes[cut:], shuffle=False),
                  epochs=EPOCHS, callbacks=[best, Sample()], verbose=2)


if __name__ == "__main__":
    main()
