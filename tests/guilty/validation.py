"""Four times as many examples are validated on after each epoch as it trained on."""

CAUSE = "validation"


def made(**arguments):
    import keras
    import numpy as np

    rng = np.random.default_rng(0)
    features = rng.normal(size=(40960, 32)).astype("float32")
    labels = rng.integers(0, 2, 40960)
    layers = [keras.layers.Dense(128, "relu") for _ in range(2)]
    model = keras.Sequential([keras.Input((32,)), *layers, keras.layers.Dense(1)])
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile("adam", loss)
    return (
        model,
        (features[:8192], labels[:8192]),
        {
            "batch_size": 32,
            "validation_data": (features[8192:], labels[8192:]),
            "verbose": 0,
            **arguments,
        },
    )


def make_training():
    return made(epochs=100)


def make_fixed():
    return made(epochs=100, validation_freq=10)
