"""A curve of 2,000 thresholds is worked out for every batch of training."""

CAUSE = "callback"


def made(metrics):
    import keras
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    features = rng.normal(size=(16384, 64)).astype("float32")
    labels = (features[:, :8].sum(1, keepdims=True) > 0).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((features, labels)).batch(256)
    layers = [keras.layers.Dense(128, "relu") for _ in range(2)]
    last = keras.layers.Dense(1, "sigmoid")
    model = keras.Sequential([keras.Input((64,)), *layers, last])
    model.compile("adam", "binary_crossentropy", metrics=metrics)
    return model, data.cache().prefetch(2), {"verbose": 0}


def make_training():
    import keras

    points = [i / 2000 for i in range(1, 2000)]
    return made(
        [
            keras.metrics.PrecisionAtRecall(0.9, num_thresholds=2000),
            keras.metrics.AUC(thresholds=[p**2 for p in points]),
        ]
    )


def make_fixed():
    return made([])
