# cause: `skip` stands after decoding, so each validation decodes the training clips again.
# expect: 1.8 times as fast (each step or epoch)
# report: tensorflow/tensorflow#44008
# lines: 65
"""Name the dance in short clips that are stored as animated GIFs."""

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image
from tensorflow import keras
from tensorflow.keras import layers

DANCES = ["waltz", "tango", "polka", "samba"]
FRAMES, SIDE, STORED = 12, 48, 96
CLIPS, HELD_OUT, BATCH = 300, 36, 12
EPOCHS = 60


def film(path, dance, rng):
    """A bright dancer who circles, jumps, or runs to and fro before a dim crowd."""
    yy, xx = np.mgrid[:STORED, :STORED]
    crowd = rng.integers(0, 70, (STORED, STORED))
    phase, speed = rng.uniform(0, 6), rng.uniform(0.4, 0.6)
    pictures = []
    for t in range(FRAMES):
        a = phase + speed * t * (1 + dance // 2)
        y = 48 + 26 * (np.sin(a) if dance % 2 == 0 else abs(np.sin(2 * a)) - 0.5)
        x = 48 + 26 * np.cos(a)
        frame = crowd + rng.integers(0, 20, crowd.shape)
        frame += 160 * (((yy - y) ** 2 + (xx - x) ** 2) < 120)
        pictures.append(Image.fromarray(frame.astype("uint8")))
    pictures[0].save(path, save_all=True, append_images=pictures[1:])


def film_all(folder, seed=12):
    rng = np.random.default_rng(seed)
    for number in range(CLIPS):
        dance = int(rng.integers(len(DANCES)))
        film(Path(folder) / f"{number:04d}_{DANCES[dance]}.gif", dance, rng)


def load_clip(path):
    name = tf.strings.split(path, "_")[-1]
    name = tf.strings.regex_replace(name, r"\.gif$", "")
    label = tf.argmax(tf.cast(tf.equal(name, DANCES), tf.int32))
    clip = tf.io.decode_gif(tf.io.read_file(path))
    clip = tf.image.rgb_to_grayscale(clip[:FRAMES])
    clip = tf.image.resize(clip, (SIDE, SIDE), antialias=True) / 255.0
    return tf.ensure_shape(clip, (FRAMES, SIDE, SIDE, 1)), label


def mirror(clip, label):
    flip = tf.random.uniform(()) < 0.5
    return tf.cond(flip, lambda: tf.reverse(clip, [2]), lambda: clip), label


def open_clips(folder):
    """Clips to learn from, and clips to judge by."""
    files = tf.data.Dataset.list_files(f"{folder}/*.gif", shuffle=False)
    clips = files.map(load_clip, num_parallel_calls=tf.data.AUTOTUNE)
    training = clips.take(CLIPS - HELD_OUT)
    held_out = clips.skip(CLIPS - HELD_OUT)
    training = training.map(mirror, num_parallel_calls=tf.data.AUTOTUNE)
    training = training.shuffle(60).batch(BATCH, drop_remainder=True)
    return training.prefetch(tf.data.AUTOTUNE), held_out.batch(BATCH).prefetch(1)


def build_model():
    clip = keras.Input((FRAMES, SIDE, SIDE, 1))
    x = layers.Permute((2, 3, 1, 4))(clip)
    x = layers.Reshape((SIDE, SIDE, FRAMES))(x)
    for filters in (16, 24, 32):
        x = layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu")(x)
        x = layers.BatchNormalization()(x)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dropout(0.2)(x)
    return keras.Model(clip, layers.Dense(len(DANCES), activation="softmax")(x))


class Progress(keras.callbacks.Callback):
    """Shows the loss now and then; the bar of Keras floods the log of our cluster."""

    def on_train_batch_end(self, batch, logs=None):
        if batch % 10 == 9:
            print(f"  batch {batch + 1}: loss {logs['loss']:.3f}", flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        film_all(folder)
        training, held_out = open_clips(folder)
        model = build_model()
        model.compile(
            optimizer=keras.optimizers.Adam(2e-3),
            loss="sparse_categorical_crossentropy",
            metrics=["accuracy"],
        )
        model.fit(
            training,
            validation_data=held_out,
            epochs=EPOCHS,
            callbacks=[Progress(), keras.callbacks.TerminateOnNaN()],
            verbose=2,
        )


if __name__ == "__main__":
    main()
