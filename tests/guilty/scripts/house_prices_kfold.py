"""Cross-validate a network that predicts the prices of houses."""

import keras
import numpy as np
import tensorflow as tf

NUM_HOUSES = 506
NUM_FEATURES = 13
NUM_FOLDS = 4
NUM_EPOCHS = 1500
BATCH_SIZE = 128

keras.utils.set_random_seed(42)


def load_data():
    """Houses of a town: crime, rooms, age, distance and so on, and their price."""
    rng = np.random.default_rng(42)
    mixing = rng.normal(size=(NUM_FEATURES, NUM_FEATURES)) / np.sqrt(NUM_FEATURES)
    features = rng.normal(size=(NUM_HOUSES, NUM_FEATURES)) @ mixing
    weights = rng.normal(size=NUM_FEATURES)
    prices = 22 + 4 * features @ weights + 2 * np.maximum(features[:, 0], 0) ** 2
    prices += rng.normal(scale=2, size=NUM_HOUSES)
    return features.astype("float32"), prices.astype("float32")


def build_model():
    model = keras.Sequential(
        [
            keras.layers.Input((NUM_FEATURES,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer="rmsprop", loss="mse", metrics=["mae"])
    return model


def train(model, features, prices):
    dataset = tf.data.Dataset.from_tensor_slices((features, prices))
    dataset = dataset.cache().shuffle(len(features)).batch(BATCH_SIZE)
    dataset = dataset.prefetch(tf.data.AUTOTUNE)
    model.fit(dataset, epochs=NUM_EPOCHS, verbose=0)


data, targets = load_data()
fold_size = len(data) // NUM_FOLDS
scores = []
for fold in range(NUM_FOLDS):
    print(f"Fold {fold + 1} of {NUM_FOLDS}")
    held_out = np.zeros(len(data), bool)
    held_out[fold * fold_size : (fold + 1) * fold_size] = True
    mean, std = data[~held_out].mean(axis=0), data[~held_out].std(axis=0)
    scaled = (data - mean) / std

    model = build_model()
    train(model, scaled[~held_out], targets[~held_out])
    mse, mae = model.evaluate(scaled[held_out], targets[held_out], verbose=0)
    scores.append(mae)

print(f"MAE {np.mean(scores):.2f} (each fold: {np.round(scores, 2)})")
