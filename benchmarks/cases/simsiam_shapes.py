# cause: a Gaussian blur by one dense depthwise convolution of 25 by 25
# fix: two passes, of 25 by 1 and 1 by 25
# report: https://github.com/tensorflow/addons/pull/2315
# lines: 61, 62, 71
"""SimSiam on drawn shapes, two random views of every picture, custom loop."""
import os
import tempfile
import time

import numpy as np
import tensorflow as tf
import keras
from keras import layers
from PIL import Image, ImageDraw

keras.utils.set_random_seed(11)

SIZE = 128
BATCH = 32
EPOCHS = 10
COUNT = 640
DIM = 128
AUTO = tf.data.AUTOTUNE
BLUR_RADIUS = 12


def write_pictures(folder, count):
    rng = np.random.default_rng(0)
    for i in range(count):
        colour = tuple(int(c) for c in rng.integers(0, 256, 3))
        img = Image.new("RGB", (SIZE, SIZE), colour)
        pen = ImageDraw.Draw(img)
        for _ in range(rng.integers(2, 6)):
            x, y = rng.integers(0, SIZE - 12, 2)
            w, h = rng.integers(12, 60, 2)
            fill = tuple(int(c) for c in rng.integers(0, 256, 3))
            box = [int(x), int(y), int(x + w), int(y + h)]
            if rng.random() < 0.5:
                pen.ellipse(box, fill=fill)
            else:
                pen.rectangle(box, fill=fill)
        img.save(os.path.join(folder, f"{i:04d}.png"))


def load(path):
    img = tf.io.decode_png(tf.io.read_file(path), channels=3)
    img.set_shape((SIZE, SIZE, 3))
    return img


def random_crop_resize(img):
    side = tf.random.uniform((), SIZE // 2, SIZE + 1, dtype=tf.int32)
    crop = tf.image.random_crop(img, (side, side, 3))
    return tf.image.resize(crop, (SIZE, SIZE))


def gaussian_blur(img, sigma):
    r = tf.range(-BLUR_RADIUS, BLUR_RADIUS + 1, dtype=tf.float32)
    g = tf.exp(-tf.square(r) / (2.0 * sigma * sigma))
    g = g / tf.reduce_sum(g)
    kernel = tf.tile((g[:, None] * g[None, :])[:, :, None, None], (1, 1, 3, 1))
    return tf.nn.depthwise_conv2d(img[None], kernel, [1, 1, 1, 1], "SAME")[0]


def one_view(img):
    img = tf.image.convert_image_dtype(img, tf.float32)
    img = random_crop_resize(img)
    img = tf.image.random_flip_left_right(img)
    img = tf.image.random_brightness(img, 0.3)
    img = tf.image.random_contrast(img, 0.6, 1.4)
    img = gaussian_blur(img, tf.random.uniform((), 0.3, 4.0))
    return tf.clip_by_value(img, 0.0, 1.0)


def make_dataset(folder):
    files = sorted(tf.io.gfile.glob(os.path.join(folder, "*.png")))
    ds = tf.data.Dataset.from_tensor_slices(files)
    ds = ds.map(load, num_parallel_calls=AUTO).cache().shuffle(COUNT)
    ds = ds.map(lambda i: (one_view(i), one_view(i)), num_parallel_calls=AUTO)
    return ds.batch(BATCH, drop_remainder=True).prefetch(AUTO)


def build_encoder():
    x = inputs = keras.Input((SIZE, SIZE, 3))
    for filters in (16, 32, 64):
        x = layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dense(DIM, use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return keras.Model(inputs, x, name="encoder")


encoder = build_encoder()
predictor = keras.Sequential(
    [keras.Input((DIM,)), layers.Dense(32, activation="relu"), layers.Dense(DIM)]
)
variables = encoder.trainable_variables + predictor.trainable_variables
optimizer = keras.optimizers.SGD(0.03, momentum=0.9)
optimizer.build(variables)


def neg_cosine(p, z):
    p = tf.math.l2_normalize(p, axis=1)
    z = tf.math.l2_normalize(tf.stop_gradient(z), axis=1)
    return -tf.reduce_mean(tf.reduce_sum(p * z, axis=1))


@tf.function
def train_step(a, b):
    with tf.GradientTape() as tape:
        za, zb = encoder(a, training=True), encoder(b, training=True)
        pa, pb = predictor(za), predictor(zb)
        loss = 0.5 * neg_cosine(pa, zb) + 0.5 * neg_cosine(pb, za)
    grads = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(grads, variables))
    spread = tf.reduce_mean(tf.math.reduce_std(tf.math.l2_normalize(za, 1), axis=0))
    return loss, spread


with tempfile.TemporaryDirectory() as folder:
    write_pictures(folder, COUNT)
    dataset = make_dataset(folder)
    for epoch in range(EPOCHS):
        begin = time.time()
        losses, spreads = [], []
        for a, b in dataset:
            loss, spread = train_step(a, b)
            losses.append(loss)
            spreads.append(spread)
        print(
            f"epoch {epoch} loss {np.mean(losses):.4f} std {np.mean(spreads):.4f} "
            f"{time.time() - begin:.1f}s",
            flush=True,
        )
