import itertools

import keras
import numpy as np
import pytest

from perfkit.diagnosis.changes import model
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.training import steps_of
from perfkit.diagnosis.trial import epochs_for
from tests.diagnosis.changes.offered import why
from tests.diagnosis.fits import BATCH, batches, rows, training


class Items(keras.utils.PyDataset):
    def __len__(self):
        return 5

    def __getitem__(self, index):
        features, targets = rows(1)
        return features * index, targets


def generated():
    return iter([Items()[index] for index in range(5)])


KINDS = {"tf.data": batches(5), "PyDataset": Items(), "generator": generated}


def test_four_times_comes_first_and_the_others_after_it():
    first, *others = model.batch(Facts(batch=32, steps=100))
    assert (first.name, first.batches, first.after) == ("batch ×4", 4, "")
    assert [one.batches for one in others] == [2, 8]
    assert {one.after for one in others} == {"batch ×4"}
    assert not any(one.combines for one in (first, *others))
    assert "changes the optimisation" in first.fix
    assert "(128 examples)" in first.fix
    # No batch is larger than the data.
    assert [one.batches for one in model.batch(Facts(batch=32, steps=3))] == [2]
    assert "holds all the data" in why(model.batch, batch=32, steps=1)


@pytest.mark.parametrize("kind", KINDS)
def test_larger_batches_hold_the_same_examples_in_the_same_order(kind):
    made = training(KINDS[kind])
    before = [np.asarray(x) for x, _ in every_batch(made)]
    model.enlarge(made, times=4)
    after = [np.asarray(x) for x, _ in every_batch(made)]
    assert [len(x) for x in after] == [4 * BATCH, BATCH]
    assert np.array_equal(np.concatenate(before), np.concatenate(after))
    made.fit([], epochs=1)


def every_batch(made):
    if made.kind == "PyDataset":
        return [made.data[index] for index in range(made.data.num_batches)]
    return made.data() if made.kind == "generator" else made.data


def test_arrays_take_a_larger_batch_and_validation_keeps_its_own():
    made = training(rows(10), batch_size=BATCH, validation_data=rows(2))
    model.enlarge(made, times=2)
    assert steps_of(made) == 5
    assert made.arguments["validation_batch_size"] == BATCH
    # Given steps of an epoch hold the same examples.
    made = training(batches(10).repeat(), steps_per_epoch=10)
    model.enlarge(made, times=4)
    assert steps_of(made) == 3


def test_an_epoch_has_as_many_examples_whatever_the_batch():
    facts = Facts(batch=32, steps=9, step_s=0.1)
    (larger,) = itertools.islice(model.batch(facts), 1)
    assert epochs_for(facts, (larger,)).examples == epochs_for(facts).examples == 288
    assert epochs_for(facts, (larger,)).steps == 3


def test_callbacks_are_called_as_often_as_before():
    seen = []
    mine = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda step, logs: seen.append(step)
    )
    made = training(batches(6), callbacks=[mine])
    model.enlarge(made, times=4)
    made.fit(made.arguments["callbacks"], epochs=1)
    assert seen == [*range(6)]
