# cause: an opened .npz keeps nothing: archive["waves"] reads and unpacks the whole array of
#        the station each time, here once for every single example
# fix: unpack each archive once, dict(np.load(path))
# expect: 5 to 16 times faster a step (measured 217 -> 45, 668 -> 41 ms on a busy machine)
# form: compressed .npz archives in a temporary folder, tf.data.Dataset.from_generator, fit
# report: https://github.com/numpy/numpy/pull/23661
#         https://github.com/numpy/numpy/issues/26498
# lines: 49, 62, 65
"""Earthquake, quarry blast or noise? Three-component seismograms of six stations."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers

STATIONS = ("BRG", "CLL", "GEC2", "MOX", "RGN", "WET")
KINDS = ("earthquake", "quarry blast", "noise")
EVENTS = 360  # per station
SAMPLES = 512
BATCH = 32


def write_archives(folder, seed=12):
    """One compressed archive per station: counts of the digitizer and the analyst's verdict."""
    rng = np.random.default_rng(seed)
    time = np.arange(SAMPLES) / 40.0
    for station in STATIONS:
        kinds = rng.integers(0, 3, EVENTS).astype("int8")
        waves = rng.normal(0, 20, (EVENTS, 3, SAMPLES))
        for wave, kind in zip(waves, kinds):
            if kind == 2:
                continue
            p, gap = rng.uniform(1, 3), rng.uniform(1.5, 5)
            pitch = rng.uniform(4, 9) if kind == 0 else rng.uniform(2, 5)
            for onset, size in ((p, 1.0), (p + gap, 2.5 if kind == 0 else 0.8)):
                after = np.maximum(time - onset, 0)
                pulse = after * np.exp(-2.2 * after) * np.sin(2 * np.pi * pitch * after)
                wave += size * rng.uniform(150, 900) * rng.normal(1, 0.3, (3, 1)) * pulse
        np.savez_compressed(folder / f"{station}.npz", waves=waves.astype("int16"), kind=kinds)


class Network:
    """All stations of the network; an event is known by its station and its row."""

    def __init__(self, folder):
        self.archives = {path.stem: np.load(path) for path in sorted(folder.glob("*.npz"))}
        events = [
            (station, row)
            for station, archive in self.archives.items()
            for row in range(len(archive["kind"]))
        ]
        order = np.random.default_rng(1).permutation(len(events))
        events = [events[i] for i in order]
        cut = int(0.9 * len(events))
        self.train, self.held_out = events[:cut], events[cut:]

    def read(self, station, row):
        archive = self.archives[station]
        wave = archive["waves"][row].T.astype("float32")
        wave -= wave.mean(axis=0)
        wave /= np.abs(wave).max() + 1e-6
        return wave, archive["kind"][row]

    def dataset(self, events, shuffle):
        def examples():
            rng = np.random.default_rng()
            for i in rng.permutation(len(events)) if shuffle else range(len(events)):
                yield self.read(*events[i])

        signature = (
            tf.TensorSpec((SAMPLES, 3), tf.float32),
            tf.TensorSpec((), tf.int8),
        )
        data = tf.data.Dataset.from_generator(examples, output_signature=signature)
        return data.batch(BATCH).prefetch(tf.data.AUTOTUNE)


def picker():
    model = keras.Sequential([keras.Input((SAMPLES, 3))], name="picker")
    for width in (16, 24, 32, 48):
        model.add(layers.Conv1D(width, 7, padding="same", use_bias=False))
        model.add(layers.BatchNormalization())
        model.add(layers.ReLU())
        model.add(layers.MaxPooling1D(3))
    model.add(layers.GlobalMaxPooling1D())
    model.add(layers.Dense(len(KINDS)))
    return model


def main():
    keras.utils.set_random_seed(12)
    with tempfile.TemporaryDirectory(prefix="seismo_") as folder:
        write_archives(Path(folder))
        network = Network(Path(folder))
        train = network.dataset(network.train, shuffle=True)
        held_out = network.dataset(network.held_out, shuffle=False)
        model = picker()
        model.compile(
            optimizer=keras.optimizers.Adam(1e-3),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
        model.fit(train, validation_data=held_out, epochs=15, verbose=2)
        hits = model.evaluate(held_out, verbose=0, return_dict=True)
        print(f"{100 * hits['accuracy']:.1f} % of the held-out events named right")


if __name__ == "__main__":
    main()
