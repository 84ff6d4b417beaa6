import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.diagnosis.changes import pipeline
from perfkit.diagnosis.pipeline.memory import Worth
from perfkit.diagnosis.training import Training
from perfkit.errors import BadParameterError
from tests.diagnosis.changes.offered import offered, why

DATA = tf.data.Dataset


class Batches(keras.utils.PyDataset):
    """Ten batches that count how often they are made."""

    made = 0

    def __len__(self):
        return 10

    def __getitem__(self, index):
        type(self).made += 1
        return np.full((2, 1), index), np.zeros(2)


def without_python(data, steps=2):
    training = Training(None, data)
    pipeline.made_beforehand(training, worth=Worth(steps))
    return training.data


def found(data):
    return offered(pipeline.python_input, data)


def test_python_in_a_map_is_called_beforehand_only(counted):
    function, calls = counted
    data = without_python(DATA.range(20).map(function).batch(2))
    assert sorted(calls) == [0, 1, 2, 3]
    batches = [batch.numpy().tolist() for batch in data]
    assert batches[:3] == [[0, 1], [2, 3], [0, 1]]
    assert len(batches) == 10
    assert sorted(calls) == [0, 1, 2, 3]


def test_what_comes_before_python_is_still_made(counted):
    function, calls = counted
    seen = tf.Variable(0)

    def noted(number):
        seen.assign_add(1)
        return number

    data = without_python(DATA.range(20).map(noted).map(function).batch(2))
    before = int(seen)
    batches = [batch.numpy().tolist() for batch in data]
    assert batches[:3] == [[0, 1], [2, 3], [0, 1]]
    assert int(seen) == before + 20
    assert sorted(calls) == [0, 1, 2, 3]


def test_a_generator_in_a_pipeline_is_run_beforehand_only():
    begun = []

    def numbers():
        begun.append(1)
        yield from range(8)

    dataset = DATA.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int32))
    data = without_python(dataset.batch(2))
    assert next(iter(data)).numpy().tolist() == [0, 1]
    assert [b.numpy().tolist() for b in data.take(3)] == [[0, 1], [2, 3], [0, 1]]
    assert begun == [1]


def test_batches_of_a_py_dataset_are_made_beforehand():
    Batches.made = 0
    data = without_python(Batches(workers=2))
    assert isinstance(data, keras.utils.PyDataset)
    assert [int(data[at][0][0, 0]) for at in range(5)] == [0, 1, 0, 1, 0]
    assert (len(data), data.num_batches, data.workers) == (10, 10, 2)
    assert Batches.made == 2


def test_a_generator_goes_on_with_what_was_made_beforehand():
    making = without_python(lambda: iter(itertools.count()), steps=3)
    assert list(itertools.islice(making(), 5)) == [0, 1, 2, 0, 1]
    # One that ended ends again.
    making = without_python(lambda: iter([7, 8]), steps=3)
    assert list(making()) == list(making()) == [7, 8]
    with pytest.raises(BadParameterError, match="no batch"):
        without_python(lambda: iter([]))


def test_a_py_dataset_with_one_worker_is_offered_more(monkeypatch):
    monkeypatch.setattr(pipeline, "_cores", lambda: 6)
    beforehand, workers = found(Batches())
    assert beforehand.cause == workers.cause == "python-input"
    assert workers.name == "6 workers"
    training = Training(None, Batches())
    workers.apply(training)
    assert training.data.workers == 6
    assert len(found(Batches(workers=6))) == 1


def test_each_way_to_call_python_is_named_with_what_to_write_instead(counted):
    function, _ = counted
    (change,) = found(DATA.range(3).map(function))
    assert "numpy_function" in change.changes
    assert "instead of numpy_function, or .cache() behind it" in change.fix

    def load(number):
        return function(number)

    (change,) = found(DATA.range(3).map(load))
    assert "instead of numpy_function in the map of `load`" in change.fix
    (change,) = found(lambda: iter([1]))
    assert "generator" in change.fix


def test_python_is_not_tried_where_there_is_none_or_another_change_tells_of_it():
    retraced = {"step": {"changed": {"words": "shape"}, "because": [], "traces": 9}}
    known = {"data": "tf.data", "pipeline": {"python": ["generator"]}}
    assert "retracing" in why(pipeline.python_input, **known, retraced=retraced)
    debugging = {"debugging": ["tf.data.experimental.enable_debug_mode()"]}
    assert "debug mode" in why(pipeline.python_input, **known, settings=debugging)
    assert found(DATA.range(3).map(lambda x: x + 1)) == []
    assert found((np.zeros(3), np.zeros(3))) == []
