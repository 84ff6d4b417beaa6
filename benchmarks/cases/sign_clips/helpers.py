"""Layers for clips of joints."""

import tensorflow as tf
from tensorflow.keras import layers


class FrameEncoder(layers.Layer):
    """Embeds each frame of a clip, and weighs it by how much it tells."""

    def __init__(self, units, frames, **options):
        super().__init__(**options)
        self.frames = frames
        self.hidden = layers.Dense(2 * units, activation="relu")
        self.embed = layers.Dense(units, activation="tanh")
        self.gate = layers.Dense(1, activation="sigmoid")
        self.norm = layers.LayerNormalization()

    def call(self, clips):
        encoded = []
        for t in range(self.frames):
            frame = self.norm(clips[:, t])
            features = self.embed(self.hidden(frame))
            encoded.append(features * self.gate(frame))
        return tf.stack(encoded, axis=1)
