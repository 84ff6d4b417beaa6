"""TensorFlow's own rewrites are off, and no batch is made while the model works."""

CAUSE = "no-prefetch"


def make_training():
    return _model(), _batches(), {"verbose": 0}


def make_fixed():
    import tensorflow as tf

    return _model(), _batches().prefetch(tf.data.AUTOTUNE), {"verbose": 0}


def _batches():
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    signals = random.standard_normal((4096, 64, 64), np.float32)
    targets = random.standard_normal((4096, 1), np.float32)
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return (
        tf.data.Dataset.from_tensor_slices((signals, targets))
        .with_options(options)
        .map(_noisy, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(32)
    )


def _noisy(signal, target):
    import tensorflow as tf

    for _ in range(3):
        noise = tf.random.normal((64, 64))
        signal = signal + 0.01 * tf.math.sin(noise)
    return signal, target


def _model():
    import keras
    from keras import layers

    # Step after step, on one core: the other is free for the next batch.
    model = keras.Sequential(
        [keras.Input((64, 64)), layers.GRU(24, unroll=False), layers.Dense(1)]
    )
    model.compile("adam", "mse", jit_compile=False)
    return model
