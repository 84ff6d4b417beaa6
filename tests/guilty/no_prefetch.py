"""TensorFlow's own rewrites are off, and no batch is made while the model works."""

CAUSE = "no-prefetch"
_WAIT_US = 20_000


def make_training():
    return _model(), _batches(), {"verbose": 0}


def make_fixed():
    import tensorflow as tf

    return _model(), _batches().prefetch(tf.data.AUTOTUNE), {"verbose": 0}


def _batches():
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops import testing

    random = np.random.default_rng(0)
    signals = random.standard_normal((4096, 64, 64), np.float32)
    targets = random.standard_normal((4096, 1), np.float32)
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return (
        tf.data.Dataset.from_tensor_slices((signals, targets))
        .with_options(options)
        .shuffle(256)
        .batch(32)
        # As long as a store on the network may take: a wait, and no work.
        .apply(testing.sleep(_WAIT_US))
    )


def _model():
    import keras
    from keras import layers

    model = keras.Sequential(
        [keras.Input((64, 64)), layers.GRU(24, unroll=False), layers.Dense(1)]
    )
    model.compile("adam", "mse", jit_compile=False)
    return model
