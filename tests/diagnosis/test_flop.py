"""The arithmetic of a step, counted in its graph and worked out by hand."""

import pytest

import perfkit


@pytest.fixture(scope="module")
def counted():
    return perfkit.fresh(several)


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


def test_a_dense_layer_has_three_products_and_the_first_two(counted):
    # Forward, for the kernel, and for what came in, which the first does not need.
    assert counted["dense"] == 2 * 4 * (2 * 128 * 256 + 3 * 256 * 64)


def test_a_convolution_counts_each_place_of_its_kernel(counted):
    first, second = 20 * 20 * 16 * (3 * 3 * 3), 18 * 18 * 8 * (3 * 3 * 16)
    assert counted["convolutions"] == 2 * 4 * (2 * first + 3 * second)


def test_an_einsum_counts_every_letter(counted):
    assert counted["einsum"] == 2 * 2 * (4 * 5 * 6 * 7)


def test_what_a_graph_does_not_show_is_not_counted(counted):
    assert counted["recurrent"] is None
    assert counted["no labels"] is None
