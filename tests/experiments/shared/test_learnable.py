"""Examples that can be learnt, though not all of them."""

import numpy as np
import pytest

from perfkit.experiments.shared.models import MODELS, endless, learnable


@pytest.mark.parametrize("name", MODELS)
def test_examples_fit_their_network_and_are_the_same_for_the_same_seed(name):
    model = MODELS[name]
    seen, labels = learnable(model, 20, 3)
    again, _ = learnable(model, 20, 3)
    other, _ = learnable(model, 20, 4)
    assert seen.shape == (20, *model.shape)
    assert seen.dtype == np.float32
    assert set(labels) <= set(range(model.classes))
    assert np.array_equal(seen, again)
    assert not np.array_equal(seen, other)


def test_the_nearest_mean_of_another_seed_tells_most_classes_but_not_all():
    model = MODELS["dense"]
    seen, labels = learnable(model, 2000, 1)
    means = np.array([seen[labels == k].mean(axis=0) for k in range(model.classes)])
    fresh, answers = learnable(model, 500, 2)
    apart = ((fresh[:, None] - means) ** 2).sum(axis=2)
    right = (apart.argmin(axis=1) == answers).mean()
    # One label in five is drawn anew, and a tenth of those by chance the right one.
    assert right == pytest.approx(0.82, abs=0.06)


def test_examples_without_an_end_are_of_the_same_task_and_none_comes_twice():
    model = MODELS["dense"]
    seen, labels = learnable(model, 2000, 1)
    means = np.array([seen[labels == k].mean(axis=0) for k in range(model.classes)])
    data = endless(model, 250)
    assert data.cardinality() == -1
    (one, answers), (other, _) = data.take(2).as_numpy_iterator()
    assert one.shape == (250, *model.shape)
    assert not np.isclose(one, other).all(axis=1).any()
    apart = ((one[:, None] - means) ** 2).sum(axis=2)
    right = (apart.argmin(axis=1) == answers).mean()
    assert right == pytest.approx(0.82, abs=0.1)
