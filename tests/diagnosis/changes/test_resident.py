import keras
import numpy as np

from perfkit.diagnosis.changes.resident import keep_one_batch
from perfkit.diagnosis.facts import facts_of
from perfkit.diagnosis.training import steps_of
from tests.diagnosis.fits import BATCH, rows, training


def validated(made):
    found = facts_of(made)
    return found.validated, found.validation_steps


def test_without_input_what_is_held_back_is_validated_as_before():
    features, labels = rows(10)
    labels[:] = np.arange(len(labels))
    made = training((features, labels), batch_size=8, validation_split=0.4)
    before, steps = validated(made), steps_of(made)
    keep_one_batch(made)
    assert validated(made) == before == (1.0, 2)
    assert steps_of(made) == steps == 3
    assert list(made.arguments["validation_data"][1]) == list(range(24, 40))


def test_without_input_a_validation_has_batches_as_large_as_before():
    made = training(rows(10), batch_size=20, validation_data=rows(10))
    before = validated(made)
    keep_one_batch(made)
    assert validated(made) == before == (1.0, 2)
    # An epoch is as long.
    assert steps_of(made) == 2
    assert len(made.data.element_spec) == 2


def test_without_input_an_item_that_is_a_list_is_a_batch():
    class Listed(keras.utils.PyDataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return list(rows(1))

    made = training(Listed())
    keep_one_batch(made)
    assert [tuple(part.shape) for part in made.data.element_spec] == [
        (BATCH, 2),
        (BATCH,),
    ]
