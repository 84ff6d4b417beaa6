"""The same photographs are decoded in each epoch anew, though they fit in memory."""

CAUSE = "no-cache"


def make_training():
    import tensorflow as tf

    decoded = _files().map(_decoded, num_parallel_calls=tf.data.AUTOTUNE)
    return _model(), _batches(decoded), {"verbose": 0}


def make_fixed():
    import tensorflow as tf

    decoded = _files().map(_decoded, num_parallel_calls=tf.data.AUTOTUNE)
    return _model(), _batches(decoded.cache()), {"verbose": 0}


def _files():
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    small = random.integers(0, 256, (8, 24, 24, 3), np.uint8)
    photographs = [
        tf.io.encode_jpeg(tf.cast(tf.image.resize(one, (192, 192)), tf.uint8)).numpy()
        for one in small
    ]
    labels = random.integers(0, 8, 1024)
    named = [photographs[label] for label in labels]
    return tf.data.Dataset.from_tensor_slices((named, labels))


def _decoded(photograph, label):
    import tensorflow as tf

    image = tf.io.decode_jpeg(photograph, channels=3)
    return tf.image.resize(image, (48, 48)) / 255, label


def _batches(images):
    import tensorflow as tf

    return images.shuffle(1024).batch(32).prefetch(tf.data.AUTOTUNE)


def _model():
    import keras
    from keras import layers

    model = keras.Sequential(
        [
            keras.Input((48, 48, 3)),
            layers.Conv2D(24, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(8, "softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    return model
