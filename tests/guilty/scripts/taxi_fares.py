"""Train a regression of taxi fares on the place, the time and the length of a ride."""

import math

import keras
import numpy as np
import tensorflow as tf

RIDES = 400_000
BATCH_SIZE = 256
EPOCHS = 20
LEARNING_RATE = 1e-3
EARTH_RADIUS_KM = 6371.0

CENTRE = (40.75, -73.97)
AIRPORT = (40.64, -73.78)


def make_rides(count, seed=7):
    """Invent rides around the centre of a city and what they cost."""
    rng = np.random.default_rng(seed)
    columns = {
        "pickup_lat": rng.normal(CENTRE[0], 0.04, count),
        "pickup_lon": rng.normal(CENTRE[1], 0.04, count),
        "dropoff_lat": rng.normal(CENTRE[0], 0.05, count),
        "dropoff_lon": rng.normal(CENTRE[1], 0.05, count),
        "minute": rng.integers(0, 7 * 24 * 60, count).astype("float32"),
        "passengers": rng.integers(1, 7, count).astype("float32"),
    }
    columns = {name: values.astype("float32") for name, values in columns.items()}
    north = (columns["pickup_lat"] - columns["dropoff_lat"]) * 111
    east = (columns["pickup_lon"] - columns["dropoff_lon"]) * 84
    night = (columns["minute"] % 1440 < 360) * 1.5
    fares = 2.5 + 1.8 * np.hypot(north, east) + night + rng.gamma(2, 0.7, count)
    return columns, fares.astype("float32")


def radians(degrees):
    return degrees * (math.pi / 180)


def haversine(lat1, lon1, lat2, lon2):
    """The distance of two places on the globe, in km."""
    lat1, lon1, lat2, lon2 = map(radians, (lat1, lon1, lat2, lon2))
    inner = (
        tf.sin((lat2 - lat1) / 2) ** 2
        + tf.cos(lat1) * tf.cos(lat2) * tf.sin((lon2 - lon1) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_KM * tf.asin(tf.sqrt(inner))


def add_features(ride, fare):
    """Distances, direction and the time as points on circles."""
    lat1, lon1 = ride["pickup_lat"], ride["pickup_lon"]
    lat2, lon2 = ride["dropoff_lat"], ride["dropoff_lon"]
    day = 2 * math.pi * (ride["minute"] % 1440) / 1440
    week = 2 * math.pi * ride["minute"] / 10080
    features = [
        haversine(lat1, lon1, lat2, lon2) / 10,
        haversine(lat1, lon1, *AIRPORT) / 10,
        haversine(lat2, lon2, *AIRPORT) / 10,
        tf.abs(lat1 - lat2) * 10,
        tf.abs(lon1 - lon2) * 10,
        (lat1 - CENTRE[0]) * 10,
        (lon1 - CENTRE[1]) * 10,
        (lat2 - CENTRE[0]) * 10,
        (lon2 - CENTRE[1]) * 10,
        tf.sin(day),
        tf.cos(day),
        tf.sin(week),
        tf.cos(week),
        ride["passengers"] / 6,
    ]
    return tf.stack(features, axis=-1), fare


def make_dataset(columns, fares, training):
    dataset = tf.data.Dataset.from_tensor_slices((columns, fares))
    if training:
        dataset = dataset.shuffle(10_000)
    dataset = dataset.map(add_features, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(BATCH_SIZE).prefetch(tf.data.AUTOTUNE)


def make_model():
    inputs = keras.Input((14,))
    x = keras.layers.BatchNormalization()(inputs)
    for units in (128, 64, 32):
        x = keras.layers.Dense(units, activation="relu")(x)
    outputs = keras.layers.Dense(1)(x)
    return keras.Model(inputs, outputs)


if __name__ == "__main__":
    columns, fares = make_rides(RIDES)
    held_out = RIDES // 10
    train = make_dataset(
        {name: values[held_out:] for name, values in columns.items()},
        fares[held_out:],
        training=True,
    )
    test = make_dataset(
        {name: values[:held_out] for name, values in columns.items()},
        fares[:held_out],
        training=False,
    )
    model = make_model()
    model.compile(keras.optimizers.Adam(LEARNING_RATE), "mse", metrics=["mae"])
    model.fit(train, epochs=EPOCHS)
    print(model.evaluate(test, return_dict=True))
