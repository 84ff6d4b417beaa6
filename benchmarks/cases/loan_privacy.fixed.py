"""Guess which loans will not be paid back, without learning any one customer by heart."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

NUMERIC, BRANCHES, PURPOSES = 32, 40, 12
BATCH_SIZE = 128


class PrivateModel(keras.Model):
    """Clips the gradients of every customer before they are averaged, and adds noise."""

    def __init__(self, *args, clip=1.0, noise=0.6, **kwargs):
        super().__init__(*args, **kwargs)
        self.clip, self.noise = clip, noise
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.auc = keras.metrics.AUC(name="auc", num_thresholds=100)

    @property
    def metrics(self):
        return [self.loss_tracker, self.auc]

    def average_privately(self, per_customer):
        squares = [
            tf.reduce_sum(tf.reshape(g, [tf.shape(g)[0], -1]) ** 2, axis=1)
            for g in per_customer
        ]
        norms = tf.sqrt(tf.add_n(squares))
        factors = tf.minimum(1.0, self.clip / (norms + 1e-6))
        averaged = []
        for g in per_customer:
            total = tf.tensordot(factors, g, axes=1)
            total += self.noise * self.clip * tf.random.normal(tf.shape(total))
            averaged.append(total / BATCH_SIZE)
        return averaged

    def train_step(self, data):
        customers, defaulted = data
        with tf.GradientTape() as tape:
            chances = self(customers, training=True)
            losses = keras.losses.binary_crossentropy(defaulted, chances)
        per_customer = tape.jacobian(losses, self.trainable_variables)
        gradients = self.average_privately(per_customer)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.loss_tracker.update_state(losses)
        self.auc.update_state(defaulted, chances)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data):
        customers, defaulted = data
        chances = self(customers, training=False)
        losses = keras.losses.binary_crossentropy(defaulted, chances)
        self.loss_tracker.update_state(losses)
        self.auc.update_state(defaulted, chances)
        return {m.name: m.result() for m in self.metrics}


def build_model():
    numbers = keras.Input((NUMERIC,), name="numbers")
    branch = keras.Input((BRANCHES,), name="branch")
    purpose = keras.Input((PURPOSES,), name="purpose")
    x = layers.Concatenate()([numbers, branch, purpose])
    x = layers.Dense(64, activation="tanh")(x)
    x = layers.Dense(32, activation="tanh")(x)
    chance = layers.Dense(1, activation="sigmoid")(x)
    return PrivateModel([numbers, branch, purpose], chance)


def make_loans(count=16_384, seed=9):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(count, NUMERIC)).astype("float32")
    branch = rng.integers(0, BRANCHES, count)
    purpose = rng.integers(0, PURPOSES, count)
    risk = numbers[:, :6].sum(axis=1) / 2 + 0.3 * (purpose % 3) - 1.5
    defaulted = (rng.random(count) < 1 / (1 + np.exp(-risk))).astype("float32")
    one_hot = keras.utils.to_categorical
    return (numbers, one_hot(branch, BRANCHES), one_hot(purpose, PURPOSES)), defaulted


def as_dataset(loans, defaulted, training):
    data = tf.data.Dataset.from_tensor_slices((loans, defaulted[:, None]))
    data = data.cache()
    if training:
        data = data.shuffle(4096, seed=1)
    return data.batch(BATCH_SIZE, drop_remainder=True).prefetch(2)


if __name__ == "__main__":
    keras.utils.set_random_seed(1)
    loans, defaulted = make_loans()
    older = tuple(part[:-2048] for part in loans)
    newer = tuple(part[-2048:] for part in loans)
    model = build_model()
    model.compile(optimizer=keras.optimizers.SGD(0.5, momentum=0.9))
    model.fit(
        as_dataset(older, defaulted[:-2048], True),
        validation_data=as_dataset(newer, defaulted[-2048:], False),
        epochs=60,
        callbacks=[keras.callbacks.ReduceLROnPlateau(patience=4)],
        verbose=2,
    )
