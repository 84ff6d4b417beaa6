# cause: the policy mixed_float16, kept from a machine with a GPU, on a processor that has
#        no half precision: convolutions fall back to slow code that converts each number
# fix: float32
# expect: 4 to 10 times faster an epoch
# form: argparse with defaults, a U-Net in a function, .npy tiles, tf.data, fit
# report: https://github.com/tensorflow/tensorflow/issues/45441
# lines: 28, 88
"""Find pores in X-ray tiles of weld seams."""

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=None, help="folder with tiles.npy and masks.npy")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--filters", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument(
        "--precision", default="mixed_float16", help="float32 or mixed_float16"
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def simulate(folder, count=360, size=64, seed=0):
    """Tiles with a bright seam and dark round pores, and the masks of the pores."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size].astype("float32")
    seam = np.exp(-(((x - rng.uniform(20, 44, (count, 1, 1))) / 12) ** 2))
    tiles = 0.3 + 0.5 * seam + rng.normal(0, 0.06, (count, size, size))
    masks = np.zeros((count, size, size), bool)
    for _ in range(5):
        cy, cx = rng.uniform(4, size - 4, (2, count, 1, 1))
        radius = rng.uniform(1.5, 5, (count, 1, 1))
        pore = (y - cy) ** 2 + (x - cx) ** 2 < radius**2
        tiles -= 0.15 * pore
        masks |= pore
    np.save(os.path.join(folder, "tiles.npy"), tiles.astype("float32"))
    np.save(os.path.join(folder, "masks.npy"), masks.astype("uint8"))


def load(folder, batch_size):
    tiles = np.load(os.path.join(folder, "tiles.npy"))[..., None]
    masks = np.load(os.path.join(folder, "masks.npy"))[..., None].astype("float32")
    cut = len(tiles) // 8
    train = tf.data.Dataset.from_tensor_slices((tiles[cut:], masks[cut:]))
    train = train.shuffle(len(tiles)).batch(batch_size).prefetch(tf.data.AUTOTUNE)
    test = tf.data.Dataset.from_tensor_slices((tiles[:cut], masks[:cut])).batch(batch_size)
    return train, test


def block(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization(momentum=0.9)(x)
        x = layers.Activation("relu")(x)
    return x


def unet(filters):
    tile = layers.Input((64, 64, 1))
    x, skips = tile, []
    for level in range(3):
        x = block(x, filters * 2**level)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = block(x, filters * 8)
    for level in reversed(range(3)):
        x = layers.Conv2DTranspose(filters * 2**level, 2, strides=2)(x)
        x = layers.Concatenate()([x, skips[level]])
        x = block(x, filters * 2**level)
    logits = layers.Conv2D(1, 1)(x)
    return keras.Model(tile, layers.Activation("sigmoid", dtype="float32")(logits))


def main():
    args = parse_args()
    keras.utils.set_random_seed(args.seed)
    keras.mixed_precision.set_global_policy(args.precision)

    if args.data is None:
        args.data = tempfile.mkdtemp(prefix="weld_")
        simulate(args.data)
    train, test = load(args.data, args.batch_size)

    model = unet(args.filters)
    model.compile(
        optimizer=keras.optimizers.Adam(args.lr),
        loss="binary_crossentropy",
        metrics=[keras.metrics.BinaryIoU(target_class_ids=[1], name="iou")],
    )
    model.fit(train, validation_data=test, epochs=args.epochs, verbose=2)
    model.save(os.path.join(args.data, "pores.keras"))


if __name__ == "__main__":
    main()
