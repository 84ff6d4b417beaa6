"""TensorFlow for the cells of a notebook, loaded where it is used."""

import pickle

import numpy as np
import pytest

from perfkit.questions.shared import later
from perfkit.questions.shared import putting_together as parts


def test_it_travels_and_has_no_more_than_the_module():
    tf = pickle.loads(pickle.dumps(later.tf))
    assert float(tf.reduce_sum(tf.ones(3))) == 3
    assert later.keras.optimizers.SGD.__name__ == "SGD"
    with pytest.raises(AttributeError):
        tf.no_such_name  # noqa: B018


def test_bytes_and_floats_are_the_same_pictures():
    pixels, _ = next(iter(parts.pictures().map(parts.decode_bytes).batch(4)))
    floats, _ = parts.as_floats(pixels, 0)
    assert pixels.dtype == "uint8"
    np.testing.assert_allclose(floats, pixels.numpy() / 255, rtol=1e-6)
    one_by_one = parts.pictures().map(parts.decode_bytes).map(parts.as_floats).batch(4)
    np.testing.assert_array_equal(next(iter(one_by_one))[0], floats)


def test_sentences_differ_in_length_and_can_be_read():
    batch, labels = next(iter(parts.sentences().padded_batch(32)))
    lengths = (batch.numpy() > 0).sum(axis=1)
    assert lengths.max() == batch.shape[1]
    assert lengths.min() < lengths.max() / 2
    model = parts.reader()
    assert model(batch).shape == (32, 2)
    assert model(batch[:, :3]).shape == (32, 2)
    assert set(labels.numpy()) <= {0, 1}
