"""Large products in float32 on a processor that multiplies bfloat16 in tiles."""

from pathlib import Path

CAUSE = "precision"


def unavailable():
    """Why this machine cannot show it; "" where it can."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        flags = ""
    return "" if "amx_bf16" in flags else "the processor is not known to have amx_bf16"


def made(policy):
    import keras
    import numpy as np
    import tensorflow as tf

    keras.config.set_dtype_policy(policy)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(4096, 1024)).astype("float32")
    labels = rng.integers(0, 10, 4096)
    data = tf.data.Dataset.from_tensor_slices((features, labels)).batch(256)
    layers = [keras.layers.Dense(1024, "relu") for _ in range(4)]
    last = keras.layers.Dense(10, dtype="float32")
    model = keras.Sequential([keras.Input((1024,)), *layers, last])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss)
    return model, data.cache().prefetch(2), {"verbose": 0}


def make_training():
    import keras

    return made(keras.config.dtype_policy().name)


def make_fixed():
    return made("mixed_bfloat16")
