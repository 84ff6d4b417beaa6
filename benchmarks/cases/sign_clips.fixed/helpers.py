# sign_clips/helpers.py, fixed by hand: the dense layers act on all frames at once
"""Layers for clips of joints."""

from tensorflow.keras import layers


class FrameEncoder(layers.Layer):
    """Embeds each frame of a clip, and weighs it by how much it tells."""

    def __init__(self, units, frames, **options):
        super().__init__(**options)
        self.hidden = layers.Dense(2 * units, activation="relu")
        self.embed = layers.Dense(units, activation="tanh")
        self.gate = layers.Dense(1, activation="sigmoid")
        self.norm = layers.LayerNormalization()

    def call(self, clips):
        frames = self.norm(clips)
        features = self.embed(self.hidden(frames))
        return features * self.gate(frames)
