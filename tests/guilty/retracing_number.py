"""A loop of one's own that hands its step a number of Python: each value is traced."""

CAUSE = "retracing"


def make_training():
    train(lambda step: 0.01 / (1 + step))


def make_fixed():
    import tensorflow as tf

    train(lambda step: tf.constant(0.01 / (1 + step)))


def train(rate_at):
    import keras
    import tensorflow as tf

    import perfkit

    model = keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(images, labels, rate):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        weights = model.trainable_variables
        for weight, slope in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(rate * slope)
        return loss

    step, dataset = 0, data()
    for _ in range(20):
        for images, labels in perfkit.steps(dataset):
            train_step(images, labels, rate_at(step))
            step += 1


def data():
    import numpy as np
    import tensorflow as tf

    draw = np.random.default_rng(0)
    images = draw.random((25600, 64), np.float32)
    labels = draw.integers(10, size=25600)
    return tf.data.Dataset.from_tensor_slices((images, labels)).batch(256).prefetch(2)
