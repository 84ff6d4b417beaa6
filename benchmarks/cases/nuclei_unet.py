# cause: the policy mixed_float16 on a processor, which has no fast kernels for it
# fix: float32
# report: https://github.com/tensorflow/tensorflow/issues/45441
# lines: 22
"""Segment round nuclei on a noisy background with a small U-Net."""
import argparse
import time

import numpy as np
import keras
from keras import layers

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--size", type=int, default=64)
parser.add_argument("--samples", type=int, default=320)
parser.add_argument("--width", type=int, default=12)
args = parser.parse_args()

keras.utils.set_random_seed(7)
keras.mixed_precision.set_global_policy("mixed_float16")


def draw_cells(count, size, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:size, 0:size]
    images = rng.normal(0.25, 0.08, (count, size, size, 3))
    masks = np.zeros((count, size, size, 1), "float32")
    for i in range(count):
        for _ in range(rng.integers(3, 9)):
            cy, cx = rng.uniform(0, size, 2)
            ry, rx = rng.uniform(4, 9, 2)
            inside = ((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2 < 1
            images[i][inside] += rng.uniform(0.1, 0.35, 3)
            masks[i, inside, 0] = 1.0
    return np.clip(images, 0, 1).astype("float32"), masks


def conv_block(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    return x


def build_unet(size, width):
    inputs = keras.Input((size, size, 3))
    skips = []
    x = inputs
    for depth in range(3):
        x = conv_block(x, width * 2**depth)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = conv_block(x, width * 8)
    for depth in reversed(range(3)):
        x = layers.UpSampling2D()(x)
        x = layers.Concatenate()([x, skips[depth]])
        x = conv_block(x, width * 2**depth)
    x = layers.Conv2D(1, 1)(x)
    outputs = layers.Activation("sigmoid", dtype="float32")(x)
    return keras.Model(inputs, outputs, name="unet")


def dice_loss(y_true, y_pred):
    inter = keras.ops.sum(y_true * y_pred, axis=(1, 2, 3))
    total = keras.ops.sum(y_true + y_pred, axis=(1, 2, 3))
    return 1.0 - (2.0 * inter + 1.0) / (total + 1.0)


def bce_dice(y_true, y_pred):
    bce = keras.ops.mean(
        keras.losses.binary_crossentropy(y_true, y_pred), axis=(1, 2)
    )
    return bce + dice_loss(y_true, y_pred)


class EpochClock(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.time()

    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch} took {time.time() - self.start:.1f}s", flush=True)


def main():
    x_train, y_train = draw_cells(args.samples, args.size, seed=0)
    x_val, y_val = draw_cells(48, args.size, seed=1)

    model = build_unet(args.size, args.width)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=bce_dice,
        metrics=[keras.metrics.BinaryIoU(target_class_ids=[1], name="iou")],
    )
    history = model.fit(
        x_train,
        y_train,
        batch_size=args.batch,
        epochs=args.epochs,
        validation_data=(x_val, y_val),
        callbacks=[
            EpochClock(),
            keras.callbacks.ReduceLROnPlateau(patience=2, factor=0.5),
        ],
        verbose=2,
    )
    print("best IoU", max(history.history["val_iou"]))


if __name__ == "__main__":
    main()
