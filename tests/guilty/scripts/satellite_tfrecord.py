"""Classify land use in multispectral satellite tiles that lie in TFRecord files."""

import argparse
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

BANDS = 10
SIDE = 64
CLASSES = 8


def make_tile(rng, label):
    """One tile: a smooth field of the class's spectrum, with sensor noise."""
    spectrum = 300 + 900 * np.sin(np.arange(BANDS) * (label + 1) / 3) ** 2
    field = rng.normal(1.0, 0.2, (8, 8)).repeat(8, 0).repeat(8, 1)
    tile = spectrum * field[..., None] + rng.normal(0, 40, (SIDE, SIDE, BANDS))
    return tile.clip(0, 10000).astype(np.uint16)


def to_example(tile, label):
    features = {
        "tile": tf.train.Feature(bytes_list=tf.train.BytesList(value=[tile.tobytes()])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=features))


def write_shards(folder, shards, per_shard):
    rng = np.random.default_rng(7)
    paths = []
    for shard in range(shards):
        path = os.path.join(folder, f"train-{shard:03}-of-{shards:03}.tfrecord")
        with tf.io.TFRecordWriter(path, options="GZIP") as writer:
            for _ in range(per_shard):
                label = int(rng.integers(CLASSES))
                example = to_example(make_tile(rng, label), label)
                writer.write(example.SerializeToString())
        paths.append(path)
    return paths


def parse(serialized):
    features = tf.io.parse_example(
        serialized,
        {
            "tile": tf.io.FixedLenFeature([], tf.string),
            "label": tf.io.FixedLenFeature([], tf.int64),
        },
    )
    tiles = tf.io.decode_raw(features["tile"], tf.uint16)
    tiles = tf.reshape(tiles, (-1, SIDE, SIDE, BANDS))
    return tf.cast(tiles, tf.float32) / 1000.0, features["label"]


def input_fn(paths, batch_size):
    dataset = tf.data.TFRecordDataset(paths, compression_type="GZIP")
    dataset = dataset.shuffle(512).repeat().batch(batch_size, drop_remainder=True)
    dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.prefetch(tf.data.AUTOTUNE)


def build_model():
    inputs = keras.Input((SIDE, SIDE, BANDS))
    x = keras.layers.Conv2D(16, 5, strides=4, activation="relu")(inputs)
    x = keras.layers.Conv2D(32, 3, strides=2, activation="relu")(x)
    x = keras.layers.Flatten()(x)
    x = keras.layers.Dense(64, activation="relu")(x)
    return keras.Model(inputs, keras.layers.Dense(CLASSES)(x))


def main(args):
    with tempfile.TemporaryDirectory() as folder:
        paths = write_shards(folder, args.shards, args.per_shard)
        model = build_model()
        model.compile(
            optimizer=keras.optimizers.SGD(0.01, momentum=0.9),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["sparse_categorical_accuracy"],
        )
        model.fit(
            input_fn(paths, args.batch_size),
            steps_per_epoch=args.shards * args.per_shard // args.batch_size,
            epochs=args.epochs,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--per-shard", type=int, default=128)
    main(parser.parse_args())
