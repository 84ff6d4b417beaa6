"""A recurrent network on time series, with a validation set of a fair size."""


def make_training():
    import keras
    import numpy as np
    import tensorflow as tf
    from keras import layers

    random = np.random.default_rng(0)
    series = random.standard_normal((8192, 48, 16), np.float32)
    targets = series[:, -1, :1].copy()

    def batches(start, end):
        part = (series[start:end], targets[start:end])
        return tf.data.Dataset.from_tensor_slices(part)

    training = batches(0, 7680).shuffle(7680).batch(64).prefetch(tf.data.AUTOTUNE)
    validation = batches(7680, 8192).batch(256).prefetch(tf.data.AUTOTUNE)
    model = keras.Sequential(
        [
            keras.Input((48, 16)),
            layers.LSTM(64, return_sequences=True),
            layers.GRU(64),
            layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    return model, training, {"validation_data": validation}
