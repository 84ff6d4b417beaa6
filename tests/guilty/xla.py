"""Many small operations on small tensors, each with a start of its own."""

CAUSE = "xla"


def made(**options):
    import keras
    import numpy as np
    import tensorflow as tf
    from keras import ops

    rng = np.random.default_rng(0)
    features = rng.normal(size=(8192, 64)).astype("float32")
    targets = rng.normal(size=(8192, 1)).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((features, targets)).batch(32)
    data = data.cache().prefetch(2)

    def wavy(x):
        for _ in range(12):
            x = x * ops.sigmoid(x) + 0.1 * ops.tanh(x) - 0.05 * ops.square(x)
            x = ops.clip(x, -3.0, 3.0)
        return x

    model = keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Dense(64, activation=wavy),
            keras.layers.Dense(64, activation=wavy),
            keras.layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse", **options)
    return model, data, {"verbose": 0}


def make_training():
    return made(jit_compile=False)


def make_fixed():
    return made(jit_compile=True)
