# cause: two AUC metrics with multi_label=True, hundreds of tags and thresholds of one's
#        own compare each guess with each threshold at every step of the training
# fix: no such metrics in the training; the AUC of held-out photos after each epoch, by
#      ranks in NumPy
# expect: 2 to 8 times faster a step
# form: .npz files of features in a folder, tf.data, functional model, fit
# report: https://github.com/keras-team/keras/issues/16809
# lines: 68, 69, 73-75
"""Tag photos from the features of a vision model, with several hundred tags."""

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers, metrics

TAGS, FEATURES = 300, 512
SHARDS, PER_SHARD = 6, 1500
EPOCHS = 20


def write_shards(folder, seed=13):
    """Features as a vision model gives them; a tag is rare and shows in a direction."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(0, 1 / np.sqrt(FEATURES), (FEATURES, TAGS))
    for shard in range(SHARDS):
        features = np.maximum(rng.normal(0, 1, (PER_SHARD, FEATURES)), 0)
        score = (features - features.mean(0)) @ direction
        score += rng.normal(0, 0.3, score.shape)
        np.savez(
            folder / f"photos_{shard}.npz",
            features=features.astype("float32"),
            tags=(score > 1.2).astype("float32"),
        )


def load(paths):
    shards = [np.load(path) for path in paths]
    features = np.concatenate([shard["features"] for shard in shards])
    return features, np.concatenate([shard["tags"] for shard in shards])


def as_dataset(features, tags, training):
    dataset = tf.data.Dataset.from_tensor_slices((features, tags))
    if training:
        dataset = dataset.shuffle(len(features))
    return dataset.batch(64).prefetch(tf.data.AUTOTUNE)


def build_model():
    inputs = keras.Input((FEATURES,))
    x = layers.Dense(256, activation="relu")(inputs)
    x = layers.Dropout(0.2)(x)
    x = layers.Dense(128, activation="relu")(x)
    return keras.Model(inputs, layers.Dense(TAGS, activation="sigmoid")(x))


def main():
    keras.utils.set_random_seed(13)
    with tempfile.TemporaryDirectory() as name:
        write_shards(Path(name))
        paths = sorted(Path(name).glob("photos_*.npz"))
        train = as_dataset(*load(paths[:-1]), training=True)
        held_out = as_dataset(*load(paths[-1:]), training=False)
    model = build_model()
    thresholds = list(np.geomspace(0.001, 0.999, 200))
    by_tag = {"multi_label": True, "num_labels": TAGS, "thresholds": thresholds}
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="binary_crossentropy",
        metrics=[
            metrics.AUC(name="roc", **by_tag),
            metrics.AUC(name="pr", curve="PR", **by_tag),
        ],
    )
    history = model.fit(train, validation_data=held_out, epochs=EPOCHS, verbose=2)
    print("last ROC of held-out photos:", history.history["val_roc"][-1])


if __name__ == "__main__":
    main()
