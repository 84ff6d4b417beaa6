"""The model is still compiled to run eagerly, as it was for debugging."""

CAUSE = "eager"


def made(**options):
    import keras
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    images = rng.normal(size=(2048, 16, 16, 3)).astype("float32")
    labels = rng.integers(0, 10, 2048)
    data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(32).prefetch(2)
    model = keras.Sequential(
        [
            keras.Input((16, 16, 3)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"], **options)
    return model, data, {"verbose": 0}


def make_training():
    return made(run_eagerly=True)


def make_fixed():
    return made()
