# photo_tags.py, fixed by hand: AUC of held-out photos after each epoch only
"""Tag photos from the features of a vision model, with several hundred tags."""

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

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


class HeldOutRoc(keras.callbacks.Callback):
    """Area under the ROC curve, from the ranks, mean of all tags."""

    def __init__(self, dataset):
        super().__init__()
        self.features = dataset.map(lambda features, tags: features)
        self.tags = np.concatenate([tags for _, tags in dataset])
        self.last = None

    def on_epoch_end(self, epoch, logs=None):
        score = self.model.predict(self.features, verbose=0)
        ranks = score.argsort(axis=0).argsort(axis=0) + 1
        positive = self.tags.sum(axis=0)
        negative = len(self.tags) - positive
        above = (ranks * self.tags).sum(axis=0) - positive * (positive + 1) / 2
        self.last = float(np.mean(above / np.maximum(positive * negative, 1)))
        print(f"epoch {epoch + 1}: ROC {self.last:.4f}")


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
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="binary_crossentropy",
    )
    roc = HeldOutRoc(held_out)
    model.fit(
        train, validation_data=held_out, epochs=EPOCHS, callbacks=[roc], verbose=2
    )
    print("last ROC of held-out photos:", roc.last)


if __name__ == "__main__":
    main()
