"""The pipeline is written as it should be, and its augmentation is too much work."""

CAUSE = "input-bound"


def make_training():
    import tensorflow as tf

    dataset = (
        _images()
        .map(_augmented, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(32)
        .prefetch(tf.data.AUTOTUNE)
    )
    return _model(), dataset, {"verbose": 0}


def make_fixed():
    import tensorflow as tf

    # Augmented a few times beforehand, and drawn from those.
    made = list(_images().map(_augmented, num_parallel_calls=2).batch(32).take(16))
    images = tf.stack([batch for batch, _ in made])
    labels = tf.stack([label for _, label in made])
    dataset = (
        tf.data.Dataset.from_tensor_slices((images, labels))
        .repeat(3)
        .shuffle(48)
        .prefetch(tf.data.AUTOTUNE)
    )
    return _model(), dataset, {"verbose": 0}


def _images():
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    images = random.integers(0, 256, (1536, 96, 96, 3), np.uint8)
    labels = random.integers(0, 10, 1536)
    return tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(512)


def _augmented(image, label):
    import tensorflow as tf

    image = tf.image.convert_image_dtype(image, tf.float32)
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_hue(image, 0.1)
    image = tf.image.random_saturation(image, 0.8, 1.2)
    return tf.image.resize(image, (64, 64)), label


def _model():
    import keras
    from keras import layers

    model = keras.Sequential(
        [
            keras.Input((64, 64, 3)),
            layers.Conv2D(16, 5, strides=2, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10, "softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    return model
