"""Sort scans of cancelled postage stamps by the country that issued them."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import Input, Sequential, layers
from tensorflow.keras.preprocessing.image import ImageDataGenerator

SIDE = 44
COUNTRIES = 8
STAMPS, BATCH_SIZE, EPOCHS = 2400, 32, 60


def engrave(country, rng):
    """A frame, a portrait and hatching whose spacing and angle a country prefers."""
    yy, xx = np.mgrid[:SIDE, :SIDE] / SIDE
    angle = np.pi * (country % 4) / 4 + rng.normal(0, 0.05)
    spacing = 30 + 12 * (country // 4)
    hatching = np.sin(spacing * (xx * np.cos(angle) + yy * np.sin(angle)))
    y, x = rng.uniform(0.4, 0.6, 2)
    portrait = ((yy - y) ** 2 * 1.6 + (xx - x) ** 2) < rng.uniform(0.05, 0.09)
    stamp = 0.5 + 0.2 * hatching * ~portrait + 0.25 * portrait
    edge = np.minimum.reduce([xx, yy, 1 - xx, 1 - yy])
    return np.where(edge < 0.06, 0.95, stamp)


def cancel(stamp, rng):
    """The ring of a postmark and the shade of an old scanner."""
    yy, xx = np.mgrid[:SIDE, :SIDE] / SIDE
    y, x = rng.uniform(0, 1, 2)
    distance = np.hypot(yy - y, xx - x)
    stamp = np.where(np.abs(distance - 0.35) < 0.03, 0.1, stamp)
    shade = rng.uniform(0.7, 1.1) + rng.uniform(-0.2, 0.2) * xx
    return stamp * shade + rng.normal(0, 0.05, stamp.shape)


def collect(count, seed):
    rng = np.random.default_rng(seed)
    countries = rng.integers(COUNTRIES, size=count)
    stamps = [cancel(engrave(country, rng), rng) for country in countries]
    return np.array(stamps, "float32")[..., None], countries


def build_model():
    model = Sequential([Input((SIDE, SIDE, 1))])
    for filters in (16, 32, 32):
        model.add(layers.Conv2D(filters, 3, padding="same", activation="relu"))
        model.add(layers.BatchNormalization())
        model.add(layers.MaxPooling2D())
    model.add(layers.Flatten())
    model.add(layers.Dropout(0.4))
    model.add(layers.Dense(64, activation="relu"))
    model.add(layers.Dense(COUNTRIES, activation="softmax"))
    return model


def make_generators(stamps, countries, test_stamps, test_countries):
    whitener = ImageDataGenerator(zca_whitening=True, zca_epsilon=1e-2)
    whitener.fit(stamps[:500])

    def whiten(images):
        flat = (images - whitener.mean).reshape(len(images), -1)
        return (flat @ whitener.zca_whitening_matrix).reshape(images.shape)

    stamps, test_stamps = whiten(stamps), whiten(test_stamps)
    augmented = ImageDataGenerator(horizontal_flip=True, vertical_flip=True)
    train = augmented.flow(stamps, countries, batch_size=BATCH_SIZE, seed=1)
    test = augmented.flow(
        test_stamps, test_countries, batch_size=BATCH_SIZE, shuffle=False
    )
    return train, test


def main():
    tf.keras.utils.set_random_seed(9)
    stamps, countries = collect(STAMPS, seed=30)
    test_stamps, test_countries = collect(256, seed=31)
    train, test = make_generators(stamps, countries, test_stamps, test_countries)
    model = build_model()
    model.compile(
        optimizer=tf.keras.optimizers.Adam(5e-4),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    counts = np.bincount(countries, minlength=COUNTRIES)
    model.fit(
        train,
        validation_data=test,
        epochs=EPOCHS,
        class_weight={i: len(countries) / (COUNTRIES * n) for i, n in enumerate(counts)},
        verbose=2,
    )


if __name__ == "__main__":
    main()
