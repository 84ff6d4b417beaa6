"""A model so small that going back to Python costs more than a step."""

CAUSE = "step-overhead"


def made(**options):
    import keras
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    features = rng.normal(size=(16384, 8)).astype("float32")
    targets = features.sum(1)
    data = tf.data.Dataset.from_tensor_slices((features, targets)).batch(32)
    # Whole batches in memory, so that nothing but the step is left.
    data = data.cache().prefetch(8)
    model = keras.Sequential(
        [keras.Input((8,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse", **options)
    return model, data, {"verbose": 0}


def make_training():
    return made()


def make_fixed():
    return made(steps_per_execution=16)
