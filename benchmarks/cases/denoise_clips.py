# cause: each batch is made of a list of NumPy arrays by convert_to_tensor, element by
#        element
# fix: np.stack first
# report: https://github.com/tensorflow/tensorflow/issues/44555
# lines: 74, 130
"""Denoising autoencoder on short sound clips, random crops of WAV files."""
import glob
import os
import tempfile
import time
import wave

import numpy as np
import tensorflow as tf
import keras
from keras import layers

RATE = 16000
CROP = 16384
BATCH = 32
STEPS = 60
EPOCHS = 10
FILES = 60


def synth(rng, seconds=4):
    t = np.arange(RATE * seconds) / RATE
    sound = np.zeros_like(t)
    for _ in range(rng.integers(2, 6)):
        f0 = rng.uniform(90, 900)
        start = rng.uniform(0, seconds - 1)
        env = np.exp(-np.maximum(t - start, 0) * rng.uniform(1, 5)) * (t > start)
        for k in range(1, 5):
            sound += env * np.sin(2 * np.pi * f0 * k * t) / k
    return sound / (np.abs(sound).max() + 1e-6)


def write_files(folder):
    rng = np.random.default_rng(5)
    for i in range(FILES):
        pcm = (synth(rng) * 30000).astype("<i2")
        with wave.open(os.path.join(folder, f"take_{i:03d}.wav"), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(RATE)
            out.writeframes(pcm.tobytes())


def read_wav(path):
    with wave.open(path, "rb") as src:
        raw = src.readframes(src.getnframes())
    return np.frombuffer(raw, "<i2").astype("float32") / 32768.0


class CropSampler:
    def __init__(self, folder, seed):
        paths = sorted(glob.glob(os.path.join(folder, "*.wav")))
        self.clips = [read_wav(p) for p in paths]
        self.rng = np.random.default_rng(seed)

    def crop(self):
        clip = self.clips[self.rng.integers(len(self.clips))]
        at = self.rng.integers(0, len(clip) - CROP)
        return clip[at : at + CROP]

    def batch(self):
        clean, noisy = [], []
        for _ in range(BATCH):
            piece = self.crop() * self.rng.uniform(0.5, 1.0)
            noise = self.rng.standard_normal(CROP, dtype="float32")
            level = self.rng.uniform(0.02, 0.15)
            clean.append(piece.astype("float32"))
            noisy.append((piece + level * noise).astype("float32"))
        return tf.convert_to_tensor(noisy), tf.convert_to_tensor(clean)


def build_model():
    x = inputs = keras.Input((CROP,))
    x = layers.Reshape((CROP, 1))(x)
    skips = []
    for filters in (8, 16, 24):
        x = layers.Conv1D(filters, 8, strides=4, padding="same", activation="relu")(x)
        skips.append(x)
    x = layers.Conv1D(32, 3, padding="same", activation="relu")(x)
    for filters, skip in zip((24, 16), reversed(skips)):
        x = layers.Concatenate()([x, skip])
        x = layers.Conv1D(filters, 3, padding="same", activation="relu")(x)
        x = layers.UpSampling1D(4)(x)
    x = layers.Concatenate()([x, skips[0]])
    x = layers.Conv1D(4, 3, padding="same", activation="tanh")(x)
    return keras.Model(inputs, layers.Reshape((CROP,))(x))


def si_snr(target, estimate):
    target -= tf.reduce_mean(target, axis=1, keepdims=True)
    estimate -= tf.reduce_mean(estimate, axis=1, keepdims=True)
    dot = tf.reduce_sum(target * estimate, axis=1, keepdims=True)
    power = tf.reduce_sum(target**2, axis=1, keepdims=True) + 1e-5
    proj = dot / power * target
    noise = tf.reduce_sum((estimate - proj) ** 2, axis=1) + 1e-5
    ratio = (tf.reduce_sum(proj**2, axis=1) + 1e-5) / noise
    return 10.0 * tf.math.log(ratio) / np.log(10.0)


keras.utils.set_random_seed(1)
model = build_model()
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(model.trainable_variables)


@tf.function
def train_step(noisy, clean):
    with tf.GradientTape() as tape:
        out = model(noisy, training=True)
        loss = tf.reduce_mean(tf.abs(out - clean)) * 10.0
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss, tf.reduce_mean(si_snr(clean, out))


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        sampler = CropSampler(folder, seed=2)
    for epoch in range(EPOCHS):
        started = time.time()
        loss_mean = keras.metrics.Mean()
        snr_mean = keras.metrics.Mean()
        for _ in range(STEPS):
            noisy, clean = sampler.batch()
            loss, snr = train_step(noisy, clean)
            loss_mean.update_state(loss)
            snr_mean.update_state(snr)
        print(
            f"epoch {epoch} loss {float(loss_mean.result()):.4f} "
            f"si-snr {float(snr_mean.result()):.2f} dB "
            f"{time.time() - started:.1f}s",
            flush=True,
        )


if __name__ == "__main__":
    main()
