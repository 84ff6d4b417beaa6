"""Epochs of a few steps, and for each the pipeline is built and filled anew."""

CAUSE = "epoch-boundary"
EXAMPLES, BATCH = 256, 32


def model_and_data():
    import keras
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    features = rng.normal(size=(EXAMPLES, 64)).astype("float32")
    labels = rng.integers(0, 10, EXAMPLES)
    data = tf.data.Dataset.from_tensor_slices((features, labels)).cache()
    layers = [keras.layers.Dense(128, "relu") for _ in range(2)]
    model = keras.Sequential([keras.Input((64,)), *layers, keras.layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    return model, data


def finished(data):
    import tensorflow as tf

    def noisy(features, label):
        return features + tf.random.normal((64,), stddev=0.1), label

    data = data.map(noisy, num_parallel_calls=tf.data.AUTOTUNE)
    return data.batch(BATCH).prefetch(tf.data.AUTOTUNE)


def make_training():
    model, data = model_and_data()
    data = finished(data.shuffle(EXAMPLES))
    return model, data, {"epochs": 1000, "verbose": 0}


def make_fixed():
    model, data = model_and_data()
    data = finished(data.shuffle(EXAMPLES).repeat())
    steps = EXAMPLES // BATCH
    return model, data, {"epochs": 1000, "steps_per_epoch": steps, "verbose": 0}
