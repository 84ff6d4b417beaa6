"""Train neural collaborative filtering on clicks and watch its held-out ranking."""

import argparse
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf
from keras import layers


@dataclass
class Config:
    users: int = 3000
    items: int = 4000
    clicks_per_user: int = 20
    negatives: int = 4
    candidates: int = 100
    factors: int = 16
    batch_size: int = 2048
    epochs: int = 20
    seed: int = 1


def simulate_clicks(config):
    """For each user the items of their taste, the last one held out."""
    rng = np.random.default_rng(config.seed)
    taste = rng.normal(size=(config.users, 6)).astype("float32")
    kind = rng.normal(size=(config.items, 6)).astype("float32")
    popularity = rng.gumbel(size=config.items).astype("float32")
    clicks = np.empty((config.users, config.clicks_per_user), "int32")
    for user in range(config.users):
        liking = kind @ taste[user] + popularity + rng.gumbel(size=config.items)
        best = np.argpartition(-liking, config.clicks_per_user)
        clicks[user] = rng.permutation(best[: config.clicks_per_user])
    return clicks[:, :-1], clicks[:, -1]


def training_pairs(clicks, config):
    """Clicked pairs and, for each, some that nobody clicked."""
    rng = np.random.default_rng(config.seed + 1)
    users = np.repeat(np.arange(config.users, dtype="int32"), clicks.shape[1])
    items = clicks.ravel()
    count = len(users) * config.negatives
    all_users = np.concatenate([users, np.repeat(users, config.negatives)])
    others = rng.integers(0, config.items, count, dtype="int32")
    all_items = np.concatenate([items, others])
    labels = np.concatenate([np.ones(len(users)), np.zeros(count)])
    order = rng.permutation(len(labels))
    return all_users[order], all_items[order], labels[order].astype("float32")


def candidate_pairs(held_out, config):
    """Each user's held-out item, followed by random ones to rank it among."""
    rng = np.random.default_rng(config.seed + 2)
    items = rng.integers(0, config.items, (config.users, config.candidates))
    items[:, 0] = held_out
    users = np.repeat(np.arange(config.users), config.candidates)
    labels = np.zeros((config.users, config.candidates), "float32")
    labels[:, 0] = 1
    return users.astype("int32"), items.ravel().astype("int32"), labels.ravel()


def make_datasets(config):
    clicks, held_out = simulate_clicks(config)
    users, items, labels = training_pairs(clicks, config)
    train = tf.data.Dataset.from_tensor_slices(((users, items), labels))
    train = train.batch(config.batch_size).cache()
    train = train.shuffle(len(labels) // config.batch_size).prefetch(2)
    users, items, labels = candidate_pairs(held_out, config)
    ranking = tf.data.Dataset.from_tensor_slices(((users, items), labels))
    ranking = ranking.batch(config.candidates).cache().prefetch(2)
    return train, ranking


def build_neumf(config):
    user = keras.Input((), dtype="int32", name="user")
    item = keras.Input((), dtype="int32", name="item")
    product = layers.multiply(
        [
            layers.Embedding(config.users, config.factors)(user),
            layers.Embedding(config.items, config.factors)(item),
        ]
    )
    deep = layers.concatenate(
        [
            layers.Embedding(config.users, 2 * config.factors)(user),
            layers.Embedding(config.items, 2 * config.factors)(item),
        ]
    )
    for units in (64, 32, 16):
        deep = layers.Dense(units, activation="relu")(deep)
    score = layers.Dense(1, activation="sigmoid")(layers.concatenate([product, deep]))
    return keras.Model([user, item], score)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    parser.add_argument("--factors", type=int, default=Config.factors)
    args = parser.parse_args()
    config = Config(epochs=args.epochs, factors=args.factors)

    train, ranking = make_datasets(config)
    model = build_neumf(config)
    model.compile("adam", "binary_crossentropy", metrics=[keras.metrics.AUC()])
    model.fit(train, epochs=config.epochs, validation_data=ranking)


if __name__ == "__main__":
    main()
