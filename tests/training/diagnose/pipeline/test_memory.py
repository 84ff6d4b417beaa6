import tempfile

import pytest
import tensorflow as tf

from perfkit.errors import BadParameterError
from perfkit.training.diagnose.pipeline import chain
from perfkit.training.diagnose.pipeline.memory import (
    Worth,
    cache_point,
    fill_caches,
    is_cached,
    keep_after,
    keep_first,
    leave_files_alone,
)
from perfkit.training.diagnose.training import Training

DATA = tf.data.Dataset


def flat(dataset):
    return [number for batch in dataset for number in batch.numpy().ravel().tolist()]


def test_kept_elements_come_again_until_there_are_as_many_as_before(counted):
    function, calls = counted
    memory = keep_first(DATA.range(10).map(function), 4)
    assert [int(x) for x in memory] == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert [int(x) for x in memory.take(5)] == [0, 1, 2, 3, 0]
    assert calls == [0, 1, 2, 3]
    # Where all are kept they come once.
    memory = keep_first(DATA.range(3).map(function), 99)
    assert [int(x) for x in memory] == [0, 1, 2]
    assert len(calls) == 4 + 3
    # What has no end has none afterwards.
    assert int(keep_first(DATA.range(3).repeat(), 2).cardinality()) == -1
    with pytest.raises(BadParameterError, match="no element"):
        keep_first(DATA.range(0), 3)


def test_a_shuffle_goes_behind_what_is_kept(counted):
    function, calls = counted
    dataset = DATA.range(6).shuffle(6, seed=1).map(function).batch(2)
    anew = keep_after(dataset, 2, Worth(9), moved=(1,))
    assert sorted(flat(anew)) == list(range(6))
    assert flat(anew) != flat(anew)
    assert calls == list(range(6))


@pytest.mark.parametrize("mine", ["", "mine"])
def test_a_cache_of_the_user_is_filled_for_a_short_epoch(
    counted, tmp_path, monkeypatch, mine
):
    function, calls = counted
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "ours"))
    made = Training(None, DATA.range(40).map(function).cache(mine).batch(4))
    leave_files_alone(made)
    fill_caches(made, Worth(2))
    assert int(made.data.cardinality()) == 10
    assert flat(made.data.take(2)) == flat(made.data.take(2)) == list(range(8))
    assert sorted(calls) == list(range(8))
    assert not list(tmp_path.glob("mine*"))
    assert any((tmp_path / "ours").iterdir()) == bool(mine)


@pytest.mark.parametrize(
    ("behind", "reads_all"),
    [
        (lambda data: data.cache().take(6), False),
        (lambda data: data.cache().batch(2).take(3).repeat(), False),
        (lambda data: data.cache().batch(2).take(-1), True),
        (lambda data: data.filter(some).cache().batch(2), True),
    ],
)
def test_a_cache_that_tensorflow_throws_away_is_not_filled(counted, behind, reads_all):
    function, calls = counted
    made = Training(None, behind(DATA.range(8).map(function)))
    assert is_cached(chain(made.data)) == reads_all
    fill_caches(made, Worth(2))
    calls.clear()
    list(made.data.take(3))
    list(made.data.take(3))
    assert (not calls) == reads_all


def some(number):
    return number >= 0


def test_an_epoch_keeps_its_length_where_only_the_training_knows_it():
    dataset = DATA.range(40).filter(some).batch(4)
    anew = keep_after(dataset, 1, Worth(2, epoch=10))
    assert len(list(anew)) == 10
    # A number that the user vouches for stays true.
    counted = tf.data.experimental.assert_cardinality(39)
    dataset = DATA.range(39).filter(some).apply(counted).batch(4)
    anew = keep_after(dataset, 1, Worth(2, epoch=10))
    assert sum(len(batch) for batch in anew) == 39


def stage(kind, **does):
    plain = dict.fromkeys(("python", "random", "reads", "records", "works"))
    return plain | {"kind": kind} | does


SOURCE = stage("slices in memory")
DECODE = stage("map", works=True, reads=True)
AUGMENT = stage("map", works=True, random=True)
SHUFFLE = stage("shuffle", random=True)
REPEAT, TAKE, BATCH = map(stage, ("repeat", "take", "batch"))
READ = stage("TFRecord files", works=True, reads=True, records=True)
PYTHON = stage("map", works=True, python=("py_function",))


@pytest.mark.parametrize(
    ("stages", "after", "moved"),
    [
        ((SOURCE, DECODE, AUGMENT, BATCH), 1, ()),
        ((SOURCE, SHUFFLE, DECODE, BATCH), 2, (1,)),
        ((SOURCE, SHUFFLE, REPEAT, DECODE, BATCH), 3, (1, 2)),
        ((SOURCE, DECODE, SHUFFLE, BATCH), 1, ()),
        ((SOURCE, BATCH, DECODE), 2, ()),
        ((READ, DECODE, SHUFFLE, AUGMENT), 1, ()),
        # What is never read to its end keeps nothing.
        ((SOURCE, DECODE, TAKE, BATCH), 2, ()),
        ((SOURCE, DECODE, REPEAT, TAKE), 1, ()),
        ((SOURCE, SHUFFLE, REPEAT, DECODE, BATCH, TAKE), 3, (1, 2)),
    ],
)
def test_a_cache_goes_behind_the_last_work_that_is_the_same_each_time(
    stages, after, moved
):
    assert cache_point(stages) == {"after": after, "moved": [*moved]}


@pytest.mark.parametrize(
    ("stages", "why"),
    [
        ((SOURCE, AUGMENT, BATCH), "freeze the augmentation"),
        ((SOURCE, PYTHON, BATCH), "Python"),
        ((SOURCE, BATCH), "work"),
        ((READ, SHUFFLE, BATCH), "work"),
        # Batches of shuffled elements are not kept.
        ((SOURCE, SHUFFLE, BATCH, DECODE), "work"),
        ((SOURCE, DECODE, SHUFFLE, TAKE), "throw the cache away"),
    ],
)
def test_where_no_cache_is_right_the_reason_is_told(stages, why):
    assert why in cache_point(stages)
