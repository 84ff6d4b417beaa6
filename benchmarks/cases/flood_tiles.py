# cause: shuffle stands behind decoding with a buffer of all tiles, and each epoch takes 10 batches: 665 tiles are decoded for 80 used
# report: https://github.com/tensorflow/tensorflow/issues/47090
# lines: 57-58, 110
"""Mark flooded ground on satellite tiles with a small U-Net."""

import tempfile
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from PIL import Image

SIDE = 64
BATCH_SIZE = 8
STEPS_PER_EPOCH = 10
EPOCHS = 150


def write_tiles(folder, count=700, seed=31):
    """A photograph of 384 x 384 for each tile, and a mask of where water stands."""
    rng = np.random.default_rng(seed)
    grain = rng.integers(0, 30, (384, 384, 3))
    (folder / "photos").mkdir()
    (folder / "masks").mkdir()
    for number in range(count):
        height = rng.normal(size=(8, 8)).repeat(48, axis=0).repeat(48, axis=1)
        water = height < -0.4
        colour = np.where(water[..., None], [50, 70, 110], [90, 120, 60])
        photo = (colour + np.roll(grain, number, axis=0)).astype(np.uint8)
        Image.fromarray(photo).save(folder / "photos" / f"{number:04d}.jpg", quality=90)
        Image.fromarray(water.astype(np.uint8)).save(folder / "masks" / f"{number:04d}.png")


def load(photo_file, mask_file):
    photo = tf.io.decode_jpeg(tf.io.read_file(photo_file), channels=3)
    mask = tf.io.decode_png(tf.io.read_file(mask_file), channels=1)
    photo = tf.image.resize(photo, (SIDE, SIDE), antialias=True) / 255.0
    mask = tf.image.resize(mask, (SIDE, SIDE), method="nearest")
    return photo, tf.cast(mask, tf.float32)


def augment(photos, masks):
    both = tf.concat([photos, masks], axis=-1)
    both = tf.image.random_flip_left_right(both)
    both = tf.image.random_flip_up_down(both)
    return tf.image.random_brightness(both[..., :3], 0.1), both[..., 3:]


def open_tiles(folder):
    photos = sorted(str(file) for file in (folder / "photos").iterdir())
    masks = sorted(str(file) for file in (folder / "masks").iterdir())
    held_out = len(photos) // 20
    train = tf.data.Dataset.from_tensor_slices((photos[held_out:], masks[held_out:]))
    train = train.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    train = train.shuffle(len(photos) - held_out)
    train = train.batch(BATCH_SIZE).map(augment).prefetch(tf.data.AUTOTUNE)
    test = tf.data.Dataset.from_tensor_slices((photos[:held_out], masks[:held_out]))
    test = test.map(load).batch(BATCH_SIZE).cache()
    return train, test


def block(x, filters):
    x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return layers.Conv2D(filters, 3, padding="same", activation="relu")(x)


def build_unet():
    inputs = keras.Input((SIDE, SIDE, 3))
    a = block(inputs, 8)
    b = block(layers.MaxPooling2D()(a), 16)
    c = block(layers.MaxPooling2D()(b), 24)
    x = block(layers.Concatenate()([layers.UpSampling2D()(c), b]), 16)
    x = block(layers.Concatenate()([layers.UpSampling2D()(x), a]), 8)
    return keras.Model(inputs, layers.Conv2D(1, 1)(x))


def dice(masks, logits):
    water = tf.sigmoid(logits)
    shared = tf.reduce_sum(masks * water, axis=[1, 2, 3])
    return 1 - (2 * shared + 1) / (tf.reduce_sum(masks + water, axis=[1, 2, 3]) + 1)


def main():
    keras.utils.set_random_seed(6)
    model, optimizer = build_unet(), keras.optimizers.AdamW(1e-3)
    crossentropy = keras.losses.BinaryCrossentropy(from_logits=True)
    loss_mean, iou = keras.metrics.Mean(), keras.metrics.BinaryIoU([1], threshold=0.5)

    @tf.function
    def train_step(photos, masks):
        with tf.GradientTape() as tape:
            logits = model(photos, training=True)
            loss = crossentropy(masks, logits) + tf.reduce_mean(dice(masks, logits))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        loss_mean.update_state(loss)

    @tf.function
    def test_step(photos, masks):
        iou.update_state(masks, tf.sigmoid(model(photos, training=False)))

    with tempfile.TemporaryDirectory() as folder:
        write_tiles(Path(folder))
        train, test = open_tiles(Path(folder))
        for epoch in range(EPOCHS):
            start = time.time()
            for photos, masks in train.take(STEPS_PER_EPOCH):
                train_step(photos, masks)
            for photos, masks in test:
                test_step(photos, masks)
            seconds = time.time() - start
            print(f"{epoch:3d} loss {loss_mean.result():.3f} iou {iou.result():.3f} {seconds:.1f} s")
            loss_mean.reset_state()
            iou.reset_state()


if __name__ == "__main__":
    main()
