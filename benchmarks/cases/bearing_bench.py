# cause: none, this training is healthy
# fix: none
# expect: nothing to gain by a fix; nothing here is to be called a defect
# form: waves in an SQLite file, whole blocks of rows by one SELECT each, a PyDataset, and
#       a model of one's own that learns two tasks with uncertain weights in its train_step
# report: none, seen in parts in many codes
# lines: none
"""Find the fault of a ball bearing and its size from the waves of the test bench."""

import pathlib
import sqlite3
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers

FAULTS = ["none", "inner ring", "outer ring", "ball"]
SAMPLES = 1024
BLOCK, BLOCKS = 32, 4
EPOCHS = 12


def record(path, runs=6400, seed=3):
    """The bench writes its waves as 16-bit integers, the runs in random order."""
    rng = np.random.default_rng(seed)
    fault = rng.integers(len(FAULTS), size=runs)
    size = np.where(fault > 0, rng.uniform(0.1, 1.0, runs), 0.0)
    beat = np.array([1, 54, 36, 47])[fault][:, None] * rng.uniform(0.97, 1.03, (runs, 1))
    time = np.arange(SAMPLES, dtype="float32")[None] / SAMPLES
    phase = (time * beat + rng.random((runs, 1))) % 1
    ring = np.exp(-phase * 9) * np.sin(2 * np.pi * 7 * phase) * size[:, None]
    wave = 0.3 * np.sin(2 * np.pi * 29 * time) + ring + rng.normal(0, 0.25, ring.shape)
    wave = np.clip(wave * 9000, -32768, 32767).astype("<i2")
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE run (id INTEGER PRIMARY KEY, fault INT, size REAL, wave BLOB)")
        rows = zip(range(runs), fault.tolist(), size.tolist(), map(bytes, wave))
        base.executemany("INSERT INTO run VALUES (?, ?, ?, ?)", rows)


class Runs(keras.utils.PyDataset):
    """Batches of a few blocks of neighbouring runs; the blocks are mixed in every epoch."""

    def __init__(self, path, first, last, shuffle=False, **options):
        super().__init__(**options)
        self.base = sqlite3.connect(path, check_same_thread=False)
        self.starts = np.arange(first, last, BLOCK)
        self.shuffle = shuffle
        self.rng = np.random.default_rng(first)

    def __len__(self):
        return len(self.starts) // BLOCKS

    def __getitem__(self, index):
        rows = []
        for start in self.starts[index * BLOCKS : (index + 1) * BLOCKS].tolist():
            rows += self.base.execute(
                "SELECT fault, size, wave FROM run WHERE id >= ? AND id < ?",
                (start, start + BLOCK),
            ).fetchall()
        fault, size, wave = zip(*rows)
        wave = np.frombuffer(b"".join(wave), "<i2").reshape(len(rows), SAMPLES, 1)
        targets = {"fault": np.array(fault, "int32"), "size": np.array(size, "float32")}
        return wave.astype("float32") / 9000, targets

    def on_epoch_end(self):
        if self.shuffle:
            self.rng.shuffle(self.starts)


class Listener(keras.Model):
    """Two answers; how much each of them weighs in the loss is learnt as well."""

    def __init__(self):
        super().__init__()
        self.ear = keras.Sequential()
        for filters in (32, 64, 64, 96):
            self.ear.add(layers.Conv1D(filters, 9, strides=2, padding="same", activation="relu"))
            self.ear.add(layers.GroupNormalization(8))
        self.ear.add(layers.GlobalAveragePooling1D())
        self.fault, self.size = layers.Dense(len(FAULTS)), layers.Dense(1)
        self.doubt = self.add_weight(shape=(2,), initializer="zeros", name="doubt")
        self.hits = keras.metrics.SparseCategoricalAccuracy(name="hits")
        self.miss = keras.metrics.MeanAbsoluteError(name="miss")
        self.total = keras.metrics.Mean(name="loss")

    def call(self, wave, training=False):
        heard = self.ear(wave, training=training)
        return self.fault(heard), self.size(heard)[:, 0]

    @property
    def metrics(self):
        return [self.total, self.hits, self.miss]

    def follow(self, targets, answers, training):
        scores, size = answers
        wrong = tf.nn.sparse_softmax_cross_entropy_with_logits(targets["fault"], scores)
        far = tf.square(targets["size"] - size)
        each = tf.stack([tf.reduce_mean(wrong), tf.reduce_mean(far)])
        loss = tf.reduce_sum(tf.exp(-self.doubt.value) * each + self.doubt.value)
        self.total.update_state(loss)
        self.hits.update_state(targets["fault"], scores)
        self.miss.update_state(targets["size"], size)
        return loss

    def train_step(self, data):
        wave, targets = data
        with tf.GradientTape() as tape:
            loss = self.follow(targets, self(wave, training=True), True)
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply(gradients, self.trainable_weights)
        return {metric.name: metric.result() for metric in self.metrics}

    def test_step(self, data):
        wave, targets = data
        self.follow(targets, self(wave, training=False), False)
        return {metric.name: metric.result() for metric in self.metrics}


if __name__ == "__main__":
    keras.utils.set_random_seed(11)
    path = pathlib.Path(tempfile.mkdtemp(prefix="bench_")) / "runs.sqlite"
    record(path)
    model = Listener()
    model.compile(optimizer=keras.optimizers.AdamW(1e-3, weight_decay=1e-4))
    model.fit(Runs(path, 0, 5632, shuffle=True), validation_data=Runs(path, 5632, 6400),
              epochs=EPOCHS, verbose=2)
