"""A training step of a small network that classifies images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit.experiments.shared import augment

if TYPE_CHECKING:
    from collections.abc import Callable

    import keras
    import tensorflow as tf


def small_cnn(side: int, classes: int) -> keras.Model:
    """Three convolutions and a dense layer: a step takes milliseconds on two cores."""
    import keras

    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((side, side, 3)),
            layers.Conv2D(16, 7, strides=4, padding="same", activation="relu"),
            layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(64, 3, strides=2, padding="same", activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(classes),
        ]
    )


def augmenting(model: keras.Model) -> keras.Model:
    """Put mirroring and brightening into the model, as its first layers."""
    import keras

    brightness = keras.layers.RandomBrightness(augment.BRIGHTNESS, value_range=(0, 1))
    mirror = keras.layers.RandomFlip("horizontal")
    return keras.Sequential(
        [keras.Input(model.input_shape[1:]), mirror, brightness, model]
    )


def from_bytes(images: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
    """Scale and brighten a batch of bytes: what a pipeline of bytes leaves to do."""
    squares, brighter = images
    return augment.scale(squares) + brighter[:, None, None, None]


def step_of(
    model: keras.Model, prepare: Callable[[Any], Any] | None = None
) -> Callable[[Any, Any], float]:
    """Give a function that trains on one batch and waits until that is done.

    Waiting after each step keeps apart what is the model's time and what is the wait
    for data; work that a device could overlap with copying the next batch is not.

    Args:
        model: What to train.
        prepare: What to do with the images first, as part of the step.
    """
    import keras
    import tensorflow as tf

    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)

    def step(images: Any, labels: tf.Tensor) -> tf.Tensor:
        if prepare is not None:
            images = prepare(images)
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        weights = model.trainable_variables
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    graph = tf.function(step, autograph=False)
    return lambda images, labels: float(graph(images, labels))
