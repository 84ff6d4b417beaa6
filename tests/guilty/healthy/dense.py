"""A dense network whose steps are mostly arithmetic, fed by slices of arrays."""


def make_training():
    import keras
    import numpy as np
    import tensorflow as tf
    from keras import layers

    random = np.random.default_rng(0)
    rows = random.standard_normal((16384, 512), np.float32)
    targets = random.standard_normal((16384, 1), np.float32)
    dataset = (
        tf.data.Dataset.from_tensor_slices((rows, targets))
        .shuffle(16384)
        .batch(256)
        .prefetch(tf.data.AUTOTUNE)
    )
    model = keras.Sequential(
        [
            keras.Input((512,)),
            layers.Dense(1024, "relu"),
            layers.Dense(1024, "relu"),
            layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    return model, dataset
