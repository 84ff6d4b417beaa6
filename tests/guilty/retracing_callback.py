"""A callback that hands a number of Python to a function: traced at every batch."""

CAUSE = "retracing"


def make_training():
    return training(lambda batch: batch)


def make_fixed():
    import tensorflow as tf

    return training(tf.constant)


def training(numbered):
    import keras
    import numpy as np
    import tensorflow as tf

    model = keras.Sequential(
        [
            keras.Input((128,)),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)

    class Averaging(keras.callbacks.Callback):
        """Keeps an average of the weights, as of the start less and less sure."""

        def on_train_begin(self, logs=None):
            self.seen = 0
            self.average = [tf.Variable(w) for w in self.model.trainable_variables]

        def on_train_batch_end(self, batch, logs=None):
            self.seen += 1
            average(numbered(self.seen))

    callback = Averaging()

    @tf.function
    def average(seen):
        share = tf.minimum(0.99, tf.cast(seen, tf.float32) / 1000.0)
        for mean, now in zip(callback.average, model.trainable_variables, strict=True):
            mean.assign(share * mean + (1 - share) * now)

    draw = np.random.default_rng(0)
    images = draw.random((25600, 128), np.float32)
    labels = draw.integers(10, size=25600)
    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(256)
    options = {"callbacks": [callback], "verbose": 0}
    return model, dataset.prefetch(2), options
