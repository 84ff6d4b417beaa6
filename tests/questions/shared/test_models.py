"""What a network learns from."""

import numpy as np
import pytest

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
