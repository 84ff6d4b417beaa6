"""What the reference trainings are said to compute, against the networks themselves."""

import math

import pytest

from perfkit.experiments.shared.models import MODELS
from perfkit.experiments.shared.reference_jobs import FLOP


@pytest.mark.parametrize("name", FLOP)
def test_the_arithmetic_of_an_example_is_that_of_its_layers(name):
    network = MODELS[name].build()
    layers = [layer for layer in network.layers if hasattr(layer, "kernel")]
    forward = [
        # Every number of a kernel is used at every place of what comes out.
        2 * math.prod(layer.output.shape[1:-1]) * math.prod(layer.kernel.shape)
        for layer in layers
    ]
    # Backward each goes once to the kernel, and but for the first once to the input.
    assert FLOP[name] == 3 * sum(forward) - forward[0]
