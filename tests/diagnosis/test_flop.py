"""The arithmetic of a step, counted in its graph and worked out by hand."""

import perfkit


def several(tf):
    import keras
    from keras import layers

    from perfkit.diagnosis.facts import flop_of

    def of(shape, *stack):
        model = keras.Sequential([keras.Input(shape), *stack])
        model.compile("sgd", "mse")
        features = tf.zeros((4, *shape))
        return flop_of(model, (features, model(features)))

    return {
        "dense": of((128,), layers.Dense(256), layers.Dense(64)),
        "convolutions": of(
            (20, 20, 3), layers.Conv2D(16, 3, padding="same"), layers.Conv2D(8, 3)
        ),
        "einsum": of((5, 6), layers.EinsumDense("abc,cd->abd", (5, 7))),
        "recurrent": of((5, 6), layers.LSTM(3)),
        "no labels": flop_of(None, tf.zeros(3)),
    }


def test_the_products_of_a_step_are_counted_as_far_as_its_graph_shows_them():
    first, second = 20 * 20 * 16 * (3 * 3 * 3), 18 * 18 * 8 * (3 * 3 * 16)
    assert perfkit.fresh(several) == {
        # Forward, for the kernel, and for what came in, which the first does not need.
        "dense": 2 * 4 * (2 * 128 * 256 + 3 * 256 * 64),
        # Each place of the kernel counts.
        "convolutions": 2 * 4 * (2 * first + 3 * second),
        # Each letter counts.
        "einsum": 2 * 2 * (4 * 5 * 6 * 7),
        "recurrent": None,
        "no labels": None,
    }
