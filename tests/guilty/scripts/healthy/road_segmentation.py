"""Train an encoder and decoder that segments roads, from sharded TFRecord files."""

import argparse
import io
import os
import tempfile

import numpy as np
import tensorflow as tf
from PIL import Image, ImageDraw
from tensorflow.keras import Input, Model, layers

SIDE = 160


def draw_tile(rng, size=320):
    ground = rng.normal((95, 120, 80), 25, (size, size, 3))
    image = Image.fromarray(ground.clip(0, 255).astype(np.uint8))
    mask = Image.new("L", (size, size))
    for _ in range(rng.integers(2, 5)):
        line = rng.integers(0, size, 6).tolist()
        width = int(rng.integers(8, 20))
        ImageDraw.Draw(image).line(line, fill=(130, 130, 135), width=width)
        ImageDraw.Draw(mask).line(line, fill=1, width=width)
    return image, mask


def encoded(image, form):
    buffer = io.BytesIO()
    image.save(buffer, form)
    value = tf.train.BytesList(value=[buffer.getvalue()])
    return tf.train.Feature(bytes_list=value)


def write_tfrecords(folder, shards, tiles):
    rng = np.random.default_rng(6)
    for shard in range(shards):
        path = os.path.join(folder, f"roads-{shard:02}.tfrecord")
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(tiles // shards):
                image, mask = draw_tile(rng)
                feature = {
                    "image": encoded(image, "JPEG"),
                    "mask": encoded(mask, "PNG"),
                }
                features = tf.train.Features(feature=feature)
                example = tf.train.Example(features=features)
                writer.write(example.SerializeToString())


def parse(record):
    text = tf.io.FixedLenFeature([], tf.string)
    example = tf.io.parse_single_example(record, {"image": text, "mask": text})
    image = tf.io.decode_jpeg(example["image"], channels=3)
    mask = tf.io.decode_png(example["mask"], channels=1)
    image = tf.image.resize(image, (SIDE, SIDE)) / 255.0
    mask = tf.image.resize(mask, (SIDE, SIDE), method="nearest")
    return image, tf.cast(mask, tf.float32)


def read_tfrecords(folder, batch_size):
    files = tf.data.Dataset.list_files(os.path.join(folder, "*.tfrecord"))
    records = files.interleave(
        tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE
    )
    return (
        records.shuffle(256)
        .map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(batch_size)
        .prefetch(tf.data.AUTOTUNE)
    )


def block(x, filters, strides=1):
    x = layers.Conv2D(filters, 3, strides=strides, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(x)


def build_model(width):
    inputs = Input((SIDE, SIDE, 3))
    x = block(inputs, width)
    skips = []
    for level in (2, 4, 8):
        skips.append(x)
        x = block(block(x, width * level, strides=2), width * level)
    for level, skip in zip((4, 2, 1), reversed(skips), strict=True):
        x = layers.UpSampling2D(interpolation="bilinear")(block(x, width * level))
        x = block(layers.Concatenate()([x, skip]), width * level)
    return Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(x))


def main():
    parser = argparse.ArgumentParser(description="Road segmentation")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--tiles", type=int, default=320)
    parser.add_argument("--width", type=int, default=24)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        write_tfrecords(folder, shards=6, tiles=args.tiles)
        model = build_model(args.width)
        model.compile(
            optimizer="adam", loss="binary_crossentropy", metrics=["binary_accuracy"]
        )
        model.fit(read_tfrecords(folder, args.batch_size), epochs=args.epochs)


if __name__ == "__main__":
    main()
