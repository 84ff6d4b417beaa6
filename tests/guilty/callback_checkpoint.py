"""The whole model is saved after every sixteenth batch, four times an epoch."""

CAUSE = "callback"


def made(**saving):
    import tempfile
    from pathlib import Path

    import keras
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    features = rng.normal(size=(4096, 128)).astype("float32")
    labels = rng.integers(0, 10, 4096)
    data = tf.data.Dataset.from_tensor_slices((features, labels)).batch(64)
    layers = [keras.layers.Dense(256, "relu") for _ in range(3)]
    model = keras.Sequential([keras.Input((128,)), *layers, keras.layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    file = Path(tempfile.mkdtemp()) / "model-{epoch}.keras"
    saver = keras.callbacks.ModelCheckpoint(file, **saving)
    return model, data.prefetch(2), {"callbacks": [saver], "verbose": 0}


def make_training():
    return made(save_freq=16)


def make_fixed():
    # Ten epochs of 64 batches.
    return made(save_freq=640)
