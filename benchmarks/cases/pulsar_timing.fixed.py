"""Find a gravitational wave in arrival times of pulses that drift with red noise."""

import argparse

import keras
import numpy as np
import tensorflow as tf
from keras import layers

EPOCHS_OBSERVED = 384
YEARS = 12.0
BATCH_SIZE = 64
STEPS = 150


def observing_dates(seed=5):
    rng = np.random.default_rng(seed)
    return np.sort(rng.uniform(0, YEARS, EPOCHS_OBSERVED))


def noise_covariance(dates, amplitude, corner, white):
    """Drift of the pulsar's own spin and the error of each observation."""
    lag = np.abs(dates[:, None] - dates[None])
    red = amplitude**2 * np.exp(-corner * lag)
    return red + white**2 * np.eye(len(dates))


def fitted_out(dates):
    """Projection that takes offset, spin and spin-down out of the residuals."""
    design = np.vander(dates / YEARS, 3)
    return np.eye(len(dates)) - design @ np.linalg.pinv(design)


class Simulator:
    def __init__(self, dates, amplitude=1.0, corner=0.6, white=0.3, seed=0):
        self.dates = dates
        self.rng = np.random.default_rng(seed)
        covariance = noise_covariance(dates, amplitude, corner, white)
        self.factor = np.linalg.cholesky(covariance)
        self.projection = fitted_out(dates)

    def waves(self, present):
        frequency = self.rng.uniform(0.4, 2.5, (BATCH_SIZE, 1))
        phase = self.rng.uniform(0, 2 * np.pi, (BATCH_SIZE, 1))
        strength = self.rng.uniform(0.3, 0.9, (BATCH_SIZE, 1))
        wave = strength * np.sin(2 * np.pi * frequency * self.dates + phase)
        return wave * present[:, None]

    def noise(self):
        plain = self.rng.standard_normal((BATCH_SIZE, len(self.dates)))
        return plain @ self.factor.T

    def batches(self):
        while True:
            present = self.rng.integers(0, 2, BATCH_SIZE)
            residuals = self.noise() + self.waves(present)
            residuals = residuals @ self.projection
            gaps = np.diff(self.dates, prepend=0.0)
            gaps = np.broadcast_to(gaps, residuals.shape)
            series = np.stack([residuals, gaps], axis=-1)
            yield series.astype("float32"), present.astype("float32")


def stream(simulator):
    signature = (
        tf.TensorSpec((BATCH_SIZE, EPOCHS_OBSERVED, 2), tf.float32),
        tf.TensorSpec((BATCH_SIZE,), tf.float32),
    )
    data = tf.data.Dataset.from_generator(simulator.batches, output_signature=signature)
    return data.prefetch(tf.data.AUTOTUNE)


def detector():
    inputs = keras.Input((EPOCHS_OBSERVED, 2))
    x = layers.LayerNormalization(axis=1)(inputs)
    for filters, width in ((16, 9), (24, 7), (32, 5)):
        x = layers.Conv1D(filters, width, strides=2, padding="same")(x)
        x = layers.BatchNormalization()(x)
        x = layers.Activation("gelu")(x)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dropout(0.2)(x)
    outputs = layers.Dense(1, activation="sigmoid")(x)
    return keras.Model(inputs, outputs, name="detector")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--rate", type=float, default=1e-3)
    args = parser.parse_args()

    dates = observing_dates()
    train = stream(Simulator(dates, seed=1))
    check = stream(Simulator(dates, seed=2)).take(4).cache()
    model = detector()
    model.compile(
        optimizer=keras.optimizers.Adam(args.rate, clipnorm=1.0),
        loss="binary_crossentropy",
        metrics=["accuracy", keras.metrics.AUC(name="auc")],
    )
    model.fit(
        train,
        steps_per_epoch=STEPS,
        validation_data=check,
        epochs=args.epochs,
        callbacks=[keras.callbacks.EarlyStopping("val_auc", patience=30, mode="max")],
        verbose=2,
    )


if __name__ == "__main__":
    main()
