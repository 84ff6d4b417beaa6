"""Words into an embedding, averaged and classified: a model that reads texts."""


def make_training():
    import keras
    import numpy as np
    import tensorflow as tf
    from keras import layers

    random = np.random.default_rng(0)
    words = random.integers(0, 8000, (16384, 128), np.int32)
    labels = random.integers(0, 2, (16384, 1))
    dataset = (
        tf.data.Dataset.from_tensor_slices((words, labels))
        .shuffle(16384)
        .batch(128)
        .prefetch(tf.data.AUTOTUNE)
    )
    model = keras.Sequential(
        [
            keras.Input((128,), dtype="int32"),
            layers.Embedding(8000, 96),
            layers.Conv1D(64, 5, activation="relu"),
            layers.GlobalMaxPooling1D(),
            layers.Dense(64, "relu"),
            layers.Dense(1, "sigmoid"),
        ]
    )
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    return model, dataset, {"verbose": 2}
