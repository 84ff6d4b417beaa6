"""Trainings that are really run under the profiler, each in a process of its own."""

import tempfile
from pathlib import Path

STEPS = 6
BATCH = 16


def _model():
    import keras

    model = keras.Sequential(
        [keras.layers.Dense(64, activation="relu"), keras.layers.Dense(4)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    return model


def _data(batches):
    import numpy as np
    import tensorflow as tf

    count = batches * BATCH
    arrays = np.ones((count, 32), np.float32), np.zeros(count, np.int64)
    return tf.data.Dataset.from_tensor_slices(arrays).batch(BATCH)


def _never():
    raise AssertionError("no validation is looked at")
    yield


def short_epochs():
    """Epochs of four steps, fewer than are traced, and a validation that must not run.

    The callback breaks if steps are skipped.
    """
    import keras
    import tensorflow as tf

    kinds = tf.TensorSpec((None, 32)), tf.TensorSpec((None,), tf.int64)
    validation = tf.data.Dataset.from_generator(_never, output_signature=kinds)
    seen = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: None)
    return _model(), _data(4), {"validation_data": validation, "callbacks": [seen]}


def raising():
    raise KeyError("lost")


def empty():
    return _model(), _data(4).take(0)


def profiled_already():
    import tensorflow as tf

    tf.profiler.experimental.start(tempfile.gettempdir())
    return _model(), _data(4)


def loop(mark):
    """A loop of the user's own, which writes a file where it comes to its end."""
    import tensorflow as tf

    import perfkit

    model = _model()

    @tf.function
    def step(features, labels):
        with tf.GradientTape() as tape:
            loss = model.compute_loss(features, labels, model(features, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(
            zip(gradients, model.trainable_variables, strict=True)
        )

    for _ in range(3):
        for features, labels in perfkit.steps(_data(4)):
            step(features, labels)
    Path(mark).write_text("")
