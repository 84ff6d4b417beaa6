"""Train a ResNet on colour pictures of 32 by 32 pixels, the way of CIFAR-10."""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from tensorflow.keras import Input, Model, callbacks, layers, optimizers, regularizers

parser = argparse.ArgumentParser(description="ResNet v1 on 32x32 pictures")
parser.add_argument("-n", type=int, default=2, help="depth is 6 n + 2")
parser.add_argument("--batch-size", type=int, default=128)
parser.add_argument("--epochs", type=int, default=200)
parser.add_argument("--num-threads", type=int, default=1)
args = parser.parse_args()

tf.config.threading.set_intra_op_parallelism_threads(args.num_threads)
tf.config.threading.set_inter_op_parallelism_threads(args.num_threads)


def load_data(count=5000, classes=10):
    """Gratings: the class is their direction and colour."""
    rng = np.random.default_rng(10)
    labels = rng.integers(classes, size=count)
    angle = (labels * np.pi / classes)[:, None, None]
    yy, xx = np.mgrid[:32, :32]
    phase = rng.uniform(0, 6, (count, 1, 1))
    wave = np.sin(0.6 * (xx * np.cos(angle) + yy * np.sin(angle)) + phase)
    colour = np.stack([np.cos(labels), np.sin(labels), np.ones(count)], 1)
    images = wave[..., None] * colour[:, None, None] * 60 + 128
    images += rng.normal(0, 20, images.shape)
    return images.clip(0, 255).astype("uint8"), labels


def lr_schedule(epoch):
    return 1e-3 * (0.1 if epoch > 80 else 1.0) * (0.1 if epoch > 120 else 1.0)


def resnet_layer(x, filters, strides=1, activation="relu"):
    x = layers.Conv2D(
        filters,
        3,
        strides=strides,
        padding="same",
        kernel_initializer="he_normal",
        kernel_regularizer=regularizers.L2(1e-4),
    )(x)
    x = layers.BatchNormalization()(x)
    return layers.Activation(activation)(x) if activation else x


def resnet_v1(input_shape, n, num_classes=10):
    inputs = Input(shape=input_shape)
    x = resnet_layer(inputs, 16)
    for stack in range(3):
        filters = 16 * 2**stack
        for block in range(n):
            strides = 2 if stack > 0 and block == 0 else 1
            y = resnet_layer(x, filters, strides)
            y = resnet_layer(y, filters, activation=None)
            if strides == 2:
                x = layers.Conv2D(filters, 1, strides=2, padding="same")(x)
            x = layers.Activation("relu")(layers.add([x, y]))
    x = layers.AveragePooling2D(8)(x)
    outputs = layers.Dense(num_classes, activation="softmax")(layers.Flatten()(x))
    return Model(inputs, outputs)


x_train, y_train = load_data()
x_train = x_train.astype("float32") / 255
x_train -= x_train.mean(axis=0)

model = resnet_v1(x_train.shape[1:], args.n)
model.compile(
    loss="sparse_categorical_crossentropy",
    optimizer=optimizers.Adam(learning_rate=lr_schedule(0)),
    metrics=["accuracy"],
)
model.fit(
    x_train,
    y_train,
    batch_size=args.batch_size,
    epochs=args.epochs,
    callbacks=[callbacks.LearningRateScheduler(lr_schedule)],
)
