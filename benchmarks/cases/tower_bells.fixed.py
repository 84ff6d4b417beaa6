"""Which of the nine bells of a tower rings? A classifier on short recordings kept on disk."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from scipy.signal import resample
from tensorflow import keras
from tensorflow.keras import layers

BELLS, CLIPS = 9, 270
RECORDED, SECONDS, RATE = 22050, 2, 8000
SAMPLES = RATE * SECONDS
BATCH, EPOCHS = 16, 300


def ring(bell, time, rng):
    """Hum, prime, tierce, quint and nominal of a bell, each with its own decay."""
    prime = 220 * 2 ** (bell * 2 / 12) * rng.normal(1, 0.004)
    sound = np.zeros_like(time)
    for ratio, decay in ((0.5, 0.4), (1.0, 0.8), (1.2, 1.1), (1.5, 1.6), (2.0, 2.0)):
        sound += rng.uniform(0.3, 1.0) * np.sin(2 * np.pi * ratio * prime * time) * np.exp(-decay * time)
    return sound


def record_tower(folder, seed=29):
    """Writes the clips as the recorder does, 16 bits a sample, first and last one included."""
    rng = np.random.default_rng(seed)
    time = np.linspace(0, SECONDS, RECORDED * SECONDS + 1, dtype="float32")
    bells = rng.integers(0, BELLS, CLIPS)
    paths = []
    for number, bell in enumerate(bells):
        clip = ring(bell, time, rng) / 5 + rng.normal(0, 0.05, len(time))
        path = os.path.join(folder, f"clip_{number:04d}.npy")
        np.save(path, (np.clip(clip, -1, 1) * 32767).astype("int16"))
        paths.append(path)
    return np.array(paths), bells.astype("int32")


def read_clip(path):
    clip = np.load(path).astype("float32") / 32768.0
    clip = resample(clip[:-1], SAMPLES)
    return clip.astype("float32")


def vary(clip, rng):
    """Another loudness, another start, some hiss."""
    clip = np.roll(clip, rng.integers(0, RATE // 2)) * rng.uniform(0.5, 1.2)
    return clip + rng.normal(0, 0.01, SAMPLES).astype("float32")


def clips(paths, bells, training):
    rng = np.random.default_rng(2)

    def generate():
        order = rng.permutation(len(paths)) if training else np.arange(len(paths))
        for number in order:
            clip = read_clip(paths[number])
            yield vary(clip, rng) if training else clip, bells[number]

    signature = (tf.TensorSpec((SAMPLES,), tf.float32), tf.TensorSpec((), tf.int32))
    data = tf.data.Dataset.from_generator(generate, output_signature=signature)
    if not training:
        data = data.cache()
    return data.batch(BATCH, drop_remainder=training).prefetch(2)


class LogSpectrum(layers.Layer):
    def call(self, wave):
        spectrum = tf.abs(tf.signal.stft(wave, 512, 256, fft_length=512))
        return tf.math.log(spectrum[:, :, :192, None] + 1e-4)


def build_model():
    inputs = keras.Input((SAMPLES,))
    x = layers.BatchNormalization()(LogSpectrum()(inputs))
    for filters in (8, 16, 32):
        x = layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu")(x)
    x = layers.Dropout(0.3)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, layers.Dense(BELLS, activation="softmax")(x))


def main():
    with tempfile.TemporaryDirectory() as folder:
        paths, bells = record_tower(folder)
        cut = CLIPS * 8 // 9
        model = build_model()
        model.compile(optimizer=keras.optimizers.Adam(2e-3),
                      loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        model.fit(clips(paths[:cut], bells[:cut], training=True),
                  validation_data=clips(paths[cut:], bells[cut:], training=False),
                  epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
