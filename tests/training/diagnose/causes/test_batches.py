import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.errors import BadParameterError
from perfkit.training.diagnose.causes.batches import PADDING
from perfkit.training.diagnose.change import Untested
from perfkit.training.diagnose.facts import Facts, padded
from perfkit.training.diagnose.training import Training

LENGTHS = np.random.default_rng(0).permutation(np.arange(1, 41))


def words(dataset):
    """The words of each text, and the share of what holds them that is padding."""
    batches = [words for words, _ in dataset.as_numpy_iterator()]
    kept = [tuple(row[row > 0]) for batch in batches for row in batch]
    held = sum(batch.size for batch in batches)
    return sorted(kept), 1 - sum(map(len, kept)) / held


PADDED = [np.arange(1, n + 1) for n in LENGTHS]


def padded_before(where):
    side = {"padding": where, "truncating": where}
    return keras.utils.pad_sequences(PADDED, maxlen=90, **side), LENGTHS % 2


def as_arrays(where):
    return Training(None, padded_before(where), {"batch_size": 8, "shuffle": False})


def as_batches(where):
    data = tf.data.Dataset.from_tensor_slices(padded_before(where))
    return Training(None, data.batch(8))


@pytest.mark.parametrize("where", ["pre", "post"])
@pytest.mark.parametrize("make", [as_arrays, as_batches])
def test_texts_that_were_padded_beforehand_are_cut(make, where):
    made = make(where)
    batch = tuple(part[:8] for part in padded_before(where))
    facts = Facts(data=made.kind, padded=padded(None, batch))
    (change,) = PADDING.candidates(facts)
    change.apply(made)
    after, wasted = words(made.data)
    assert after == sorted(map(tuple, PADDED))
    assert wasted < 0.4
    assert "batch_size" not in made.arguments


def test_texts_that_are_full_or_of_one_length_are_left_alone():
    full = np.ones((8, 90), np.int64)
    assert padded(None, (full, full[:, 0])) == {}
    assert padded(None, (padded_before("pre")[0].astype("float32"),)) == {}
    # Labels are no texts, and a mask would have to be cut as well.
    texts = padded_before("pre")[0]
    assert padded(None, (np.ones((len(texts), 3), "float32"), texts)) == {}
    assert padded(None, ({"ids": texts, "mask": texts != 0}, texts[:, 0])) == {}
    assert padded(None, (texts, texts)) == {}
    fixed = keras.Sequential([keras.Input((90,)), keras.layers.Dense(1)])
    assert padded(fixed, (padded_before("pre")[0],)) == {}
    open_length = keras.Sequential([keras.Input((None,)), keras.layers.Embedding(9, 2)])
    found = padded(open_length, (padded_before("pre")[0],))
    assert found == {"part": 0, "front": True}


def test_texts_of_one_length_have_no_buckets():
    rows = np.zeros((16, 90), np.int64)
    rows[:, :5] = 1
    made = Training(None, (rows, rows[:, 0]), {"batch_size": 8, "shuffle": False})
    known = {"part": 0, "front": False}
    (change,) = PADDING.candidates(Facts(data="arrays", padded=known))
    with pytest.raises(BadParameterError, match="one length"):
        change.apply(made)
    (said,) = PADDING.candidates(Facts(data="generator", padded=known))
    assert isinstance(said, Untested)
