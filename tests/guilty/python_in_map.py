"""Each picture is standardised row by row in NumPy, inside the map."""

CAUSE = "python-input"


def make_training():
    import numpy as np
    import tensorflow as tf

    def standardised(image):
        rows = np.empty(image.shape, np.float32)
        for number, row in enumerate(image):
            rows[number] = (row - row.mean()) / (row.std() + 1)
        return rows

    def prepared(image, label):
        image = tf.numpy_function(standardised, [image], tf.float32)
        return tf.ensure_shape(image, (48, 48)), label

    return _model(), _batches(prepared), {"verbose": 0}


def make_fixed():
    import tensorflow as tf

    def prepared(image, label):
        image = tf.cast(image, tf.float32)
        mean, variance = tf.nn.moments(image, axes=[1], keepdims=True)
        return (image - mean) / (tf.sqrt(variance) + 1), label

    return _model(), _batches(prepared), {"verbose": 0}


def _batches(prepared):
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    images = random.integers(0, 256, (6400, 48, 48), np.uint8)
    labels = random.integers(0, 10, 6400)
    return (
        tf.data.Dataset.from_tensor_slices((images, labels))
        .map(prepared, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(32)
        .prefetch(tf.data.AUTOTUNE)
    )


def _model():
    import keras
    from keras import layers

    model = keras.Sequential(
        [
            keras.Input((48, 48)),
            layers.Flatten(),
            layers.Dense(256, "relu"),
            layers.Dense(10, "softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    return model
