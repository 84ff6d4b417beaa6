"""Photographs are augmented at random one after another, on one core."""

CAUSE = "serial-map"


def make_training():
    return _model(), _images().map(_augmented).batch(32).prefetch(2), {"verbose": 0}


def make_fixed():
    import tensorflow as tf

    parallel = _images().map(_augmented, num_parallel_calls=tf.data.AUTOTUNE)
    return _model(), parallel.batch(32).prefetch(2), {"verbose": 0}


def _images():
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    images = random.integers(0, 256, (1536, 112, 112, 3), np.uint8)
    labels = random.integers(0, 10, 1536)
    # Seen many times over, so that an epoch is as long as one of real photographs.
    return tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(512).repeat(12)


def _augmented(image, label):
    import tensorflow as tf

    image = tf.image.convert_image_dtype(image, tf.float32)
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_crop(image, (96, 96, 3))
    image = tf.image.random_hue(image, 0.1)
    image = tf.image.random_saturation(image, 0.8, 1.2)
    image = tf.image.random_contrast(image, 0.8, 1.2)
    return tf.image.resize(image, (64, 64)), label


def _model():
    import keras
    from keras import layers

    model = keras.Sequential(
        [
            keras.Input((64, 64, 3)),
            layers.Reshape((16, 768)),
            layers.GRU(16),
            layers.Dense(10, "softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    return model
