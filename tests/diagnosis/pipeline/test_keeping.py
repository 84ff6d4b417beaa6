import pytest
import tensorflow as tf

from perfkit.diagnosis.pipeline.rebuilding import Worth, kept, kept_after, refilled
from perfkit.errors import BadParameterError

DATA = tf.data.Dataset


@pytest.fixture
def counted():
    """A map that counts how often it is called, and how often it was."""
    calls = []

    def call(number):
        calls.append(int(number))
        return number

    return lambda x: tf.numpy_function(call, [x], tf.int64), calls


def flat(dataset):
    return [number for batch in dataset for number in batch.numpy().ravel().tolist()]


def test_kept_elements_come_again_until_there_are_as_many_as_before(counted):
    function, calls = counted
    memory = kept(DATA.range(10).map(function), 4)
    assert [int(x) for x in memory] == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert [int(x) for x in memory.take(5)] == [0, 1, 2, 3, 0]
    assert calls == [0, 1, 2, 3]


def test_where_all_are_kept_they_come_once(counted):
    function, calls = counted
    memory = kept(DATA.range(3).map(function), 99)
    assert [int(x) for x in memory] == [0, 1, 2]
    assert len(calls) == 3


def test_what_has_no_end_has_none_afterwards():
    assert int(kept(DATA.range(3).repeat(), 2).cardinality()) == -1


def test_nothing_cannot_be_kept():
    with pytest.raises(BadParameterError, match="no element"):
        kept(DATA.range(0), 3)


def test_as_many_are_kept_as_the_steps_need(counted):
    function, calls = counted
    dataset = DATA.range(100).map(function).batch(5).map(lambda x: -x)
    assert flat(kept_after(dataset, 1, Worth(2)))[:12] == [
        *(-x for x in range(10)),
        *(0, -1),
    ]
    assert sorted(calls) == list(range(10))


def test_a_shuffle_goes_behind_what_is_kept(counted):
    function, calls = counted
    dataset = DATA.range(6).shuffle(6, seed=1).map(function).batch(2)
    anew = kept_after(dataset, 2, Worth(9), moved=(1,))
    assert sorted(flat(anew)) == list(range(6))
    assert flat(anew) != flat(anew)
    assert calls == list(range(6))


def test_a_cache_of_the_user_is_filled_for_a_short_epoch(counted, tmp_path):
    function, calls = counted
    mine = tmp_path / "mine"
    ours = tmp_path / "ours"
    ours.mkdir()
    dataset = DATA.range(40).map(function).cache(str(mine)).batch(4)
    anew = refilled(dataset, Worth(2), str(ours))
    assert int(anew.cardinality()) == 10
    assert flat(anew.take(2)) == flat(anew.take(2)) == list(range(8))
    assert sorted(calls) == list(range(8))
    assert not list(tmp_path.glob("mine*"))


def some(number):
    return number >= 0


def test_an_epoch_keeps_its_length_where_only_the_training_knows_it():
    dataset = DATA.range(40).filter(some).batch(4)
    anew = kept_after(dataset, 1, Worth(2, epoch=10))
    assert len(list(anew)) == 10


def test_a_number_that_the_user_vouches_for_stays_true():
    counted = tf.data.experimental.assert_cardinality(39)
    dataset = DATA.range(39).filter(some).apply(counted).batch(4)
    anew = kept_after(dataset, 1, Worth(2, epoch=10))
    assert sum(len(batch) for batch in anew) == 39
