"""Batches of 4 for a model whose weights are large: each step updates all of them."""

CAUSE = "small-batch"


def made(batch):
    import keras
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    features = rng.normal(size=(8192, 256)).astype("float32")
    labels = rng.integers(0, 10, 8192)
    data = tf.data.Dataset.from_tensor_slices((features, labels)).cache()
    layers = [keras.layers.Dense(1024, "relu") for _ in range(3)]
    model = keras.Sequential([keras.Input((256,)), *layers, keras.layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    return model, data.batch(batch).prefetch(2), {"verbose": 0}


def make_training():
    return made(batch=4)


def make_fixed():
    return made(batch=32)
