"""Records are read through a buffer so small that each takes dozens of calls."""

CAUSE = "slow-read"


def make_training():
    return _model(), _batches(buffer_size=64), {"verbose": 0}


def make_fixed():
    return _model(), _batches(buffer_size=1 << 20), {"verbose": 0}


def _batches(buffer_size):
    import tensorflow as tf

    return (
        tf.data.TFRecordDataset(_file(), buffer_size=buffer_size)
        .map(_flipped, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(32)
        .prefetch(tf.data.AUTOTUNE)
        .apply(tf.data.experimental.assert_cardinality(64))
    )


def _file():
    import os
    import tempfile
    from pathlib import Path

    import numpy as np
    import tensorflow as tf

    file = Path(tempfile.gettempdir()) / "slow-read.tfrecord"
    if file.exists():
        return str(file)
    images = np.random.default_rng(0).integers(0, 256, (2048, 64 * 64 * 3), np.uint8)
    unfinished = f"{file}.{os.getpid()}"
    with tf.io.TFRecordWriter(unfinished) as writer:
        for image in images:
            writer.write(image.tobytes())
    os.replace(unfinished, file)
    return str(file)


def _flipped(record):
    import tensorflow as tf

    image = tf.reshape(tf.io.decode_raw(record, tf.uint8), (64, 64, 3))
    image = tf.image.random_flip_left_right(image)
    return tf.cast(image[::4, ::4], tf.float32) / 255, tf.constant(1)


def _model():
    import keras
    from keras import layers

    model = keras.Sequential(
        [
            keras.Input((16, 16, 3)),
            layers.Flatten(),
            layers.Dense(512, "relu"),
            layers.Dense(10, "softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    return model
