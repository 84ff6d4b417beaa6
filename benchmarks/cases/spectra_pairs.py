# cause: none, this training is healthy
# fix: none
# expect: nothing to gain by a fix; nothing here is to be called a defect
# form: subclassed model with its own train_step (contrastive learning), fed by a Python
#       generator that never ends, with steps_per_epoch
# report: none
# lines: none
"""Learn what makes two Raman spectra the same mineral, without any labels."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

BINS, CODE = 256, 64
BATCH_SIZE = 256
STEPS_PER_EPOCH, EPOCHS = 30, 100
TEMPERATURE = 0.1


def load_spectra(minerals=400, each=10, seed=23):
    """Spectra with a few sharp peaks for each mineral, in arbitrary units."""
    rng = np.random.default_rng(seed)
    bins = np.arange(BINS)
    spectra = np.zeros((minerals, BINS))
    for _ in range(6):
        place, height = rng.uniform(0, BINS, minerals), rng.gamma(2, 1, minerals)
        peak = np.exp(-((bins - place[:, None]) ** 2) / 8)
        spectra += height[:, None] * peak
    spectra = np.repeat(spectra, each, axis=0)
    spectra *= rng.uniform(0.8, 1.2, (len(spectra), 1))
    return spectra.astype("float32")


def pairs(spectra, seed=24):
    """Two noisy measurements each of the same spectra, for ever."""
    rng = np.random.default_rng(seed)
    while True:
        rows = spectra[rng.integers(len(spectra), size=BATCH_SIZE)]
        noise = rng.standard_normal((2, *rows.shape), dtype="float32")
        gain = rng.uniform(0.7, 1.3, (2, BATCH_SIZE, 1)).astype("float32")
        first, second = gain * rows + 0.1 * noise
        yield first, second


class PairNet(keras.Model):
    """Codes of the two measurements of one spectrum are to be alike."""

    def __init__(self):
        super().__init__()
        self.encoder = keras.Sequential(
            [
                layers.Dense(1024, activation="relu"),
                layers.Dense(1024, activation="relu"),
                layers.Dense(1024, activation="relu"),
                layers.Dense(CODE),
            ]
        )
        self.tracker = keras.metrics.Mean(name="loss")

    def call(self, inputs, training=False):
        return tf.math.l2_normalize(self.encoder(inputs, training=training), axis=1)

    @property
    def metrics(self):
        return [self.tracker]

    def train_step(self, data):
        first, second = data
        with tf.GradientTape() as tape:
            codes = self(tf.concat([first, second], axis=0), training=True)
            one, other = tf.split(codes, 2)
            alike = tf.matmul(one, other, transpose_b=True) / TEMPERATURE
            own = tf.range(tf.shape(alike)[0])
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(own, alike)
            loss += tf.nn.sparse_softmax_cross_entropy_with_logits(own, tf.transpose(alike))
            loss = tf.reduce_mean(loss) / 2
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}


if __name__ == "__main__":
    keras.utils.set_random_seed(22)
    model = PairNet()
    model.compile(optimizer=keras.optimizers.Adam(3e-4))
    model.fit(
        pairs(load_spectra()),
        steps_per_epoch=STEPS_PER_EPOCH,
        epochs=EPOCHS,
        verbose=2,
    )
