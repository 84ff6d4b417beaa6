"""What a network takes of the memory, and what it learns from."""

import keras
import numpy as np
import pytest

from perfkit.questions.shared.batches import forecast
from perfkit.questions.shared.models import MODELS, learnable


@pytest.mark.parametrize("name", MODELS)
def test_examples_fit_their_network_and_are_the_same_for_the_same_seed(name):
    model = MODELS[name]
    (seen, labels), (again, _), (other, _) = (
        learnable(model, 20, seed) for seed in (3, 3, 4)
    )
    assert seen.shape == (20, *model.shape)
    assert seen.dtype == np.float32
    assert set(labels) <= set(range(model.classes))
    assert np.array_equal(seen, again)
    assert not np.array_equal(seen, other)


def test_weights_gradients_and_slots_are_there_once_and_activations_each_time():
    def foreseen(dtype):
        last = keras.layers.BatchNormalization(center=False, scale=False)
        layers = keras.layers.Flatten(), keras.layers.Dense(10, dtype=dtype), last
        network = keras.Sequential([keras.Input((28, 28)), *layers])
        optimizer = keras.optimizers.Adam()
        optimizer.build(network.trainable_variables)
        return forecast(network, optimizer)

    found, weights = foreseen("float32"), 4 * (784 * 10 + 10)
    # The last layer's means and variances do not learn.
    assert (found.weights, found.gradients) == (weights + 80, weights)
    # Besides two of each weight the optimizer keeps its steps and its rate.
    assert (found.slots, found.fixed) == (2 * weights + 12, 4 * weights + 92)
    assert found.activations == 4 * (28 * 28 + 10 + 10)
    # A layer counts in the precision that it computes in.
    assert foreseen("float16").activations == 4 * (28 * 28 + 10) + 2 * 10
