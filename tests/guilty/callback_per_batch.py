"""A callback keeps the norms of all weights after every batch."""

CAUSE = "callback"


def model_and_data():
    import keras
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    features = rng.normal(size=(8192, 64)).astype("float32")
    labels = rng.integers(0, 10, 8192)
    data = tf.data.Dataset.from_tensor_slices((features, labels)).batch(64)
    layers = [keras.layers.Dense(256, "relu") for _ in range(4)]
    model = keras.Sequential([keras.Input((64,)), *layers, keras.layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    return model, data.prefetch(2)


def norms():
    import keras
    import numpy as np

    class Norms(keras.callbacks.Callback):
        def __init__(self, every):
            super().__init__()
            self.every, self.kept = every, []

        def on_train_batch_end(self, batch, logs=None):
            if batch % self.every == 0:
                weights = self.model.get_weights()
                self.kept.append([float(np.linalg.norm(one)) for one in weights])
                self.kept.append([float(np.std(one)) for one in weights])

    return Norms


def make_training():
    model, data = model_and_data()
    return model, data, {"callbacks": [norms()(every=1)], "verbose": 0}


def make_fixed():
    model, data = model_and_data()
    return model, data, {"callbacks": [norms()(every=100)], "verbose": 0}
