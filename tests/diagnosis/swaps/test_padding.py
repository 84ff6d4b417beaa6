import numpy as np
import pytest
import tensorflow as tf

from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.pipeline.facts import pipeline_facts
from perfkit.diagnosis.swap import Swap, Untested
from perfkit.diagnosis.swaps import padding
from perfkit.diagnosis.training import Training
from perfkit.errors import BadParameterError

LENGTHS = np.random.default_rng(0).permutation(np.arange(1, 41))


def texts(lengths=LENGTHS):
    data = tf.data.Dataset.from_tensor_slices(lengths)
    return data.map(lambda n: (tf.range(n) * 0 + n, n % 2))


def offered(dataset):
    made = Training(None, dataset)
    facts = Facts(data="tf.data", pipeline=pipeline_facts(made))
    found = {getattr(one, "name", ""): one for one in padding.swaps(facts)}
    return made, found


def words(dataset):
    """The words of each text, and the share of what holds them that is padding."""
    batches = [words for words, _ in dataset.as_numpy_iterator()]
    kept = [tuple(row[row > 0]) for batch in batches for row in batch]
    held = sum(batch.size for batch in batches)
    return sorted(kept), 1 - sum(map(len, kept)) / held


def test_batches_are_padded_to_the_longest_of_their_own():
    made, found = offered(texts().padded_batch(8, padded_shapes=([90], [])))
    before, wasted = words(made.data)
    found["padded to the longest"].apply(made)
    after, less = words(made.data)
    assert after == before
    assert less < wasted / 1.5
    assert list(made.data.element_spec[0].shape) == [None, None]


def test_buckets_hold_the_same_texts_with_less_padding():
    made, found = offered(texts().shuffle(9).padded_batch(8).prefetch(1))
    assert set(found) == {"buckets of similar length"}
    assert not found["buckets of similar length"].combines
    before, wasted = words(made.data)
    found["buckets of similar length"].apply(made)
    after, less = words(made.data)
    assert after == before
    assert less < wasted / 1.5


def test_texts_of_one_length_have_no_buckets():
    made, found = offered(texts(np.full(16, 5)).padded_batch(8))
    with pytest.raises(BadParameterError, match="one length"):
        found["buckets of similar length"].apply(made)


def test_what_is_not_padded_needs_nothing():
    assert offered(texts(np.full(8, 3)).batch(4))[1] == {}


def test_buckets_behind_a_cache_are_not_tried():
    (said,) = offered(texts().cache().padded_batch(8))[1].values()
    assert isinstance(said, Untested)
    assert not isinstance(said, Swap)
