import keras

from perfkit.diagnosis.facts import Facts, facts_of, steps_of
from perfkit.diagnosis.swap import Swap, Untested
from perfkit.diagnosis.swaps import observers
from perfkit.diagnosis.swaps.settings import with_option
from tests.diagnosis.fits import BATCH, batches, rows, training


def named(**known):
    return {
        one.name: one
        for one in observers.epochs(Facts(**known))
        if isinstance(one, Swap)
    }


def untested(**known):
    (why,) = (
        one.why for one in observers.epochs(Facts(**known)) if isinstance(one, Untested)
    )
    return why


def test_validation_is_a_defect_only_where_it_takes_most_of_an_epoch():
    swap = named(validation=True, validated=1, validation_steps=50)[
        "without validation"
    ]
    assert (swap.kind, swap.defect_from) == ("by gain", 2.0)
    assert "50 steps after every epoch" in swap.changes
    assert "validation_freq" in swap.fix
    assert "without validation" not in named()


def test_the_iterator_is_kept_where_keras_makes_a_new_one_each_epoch():
    assert observers.ENDLESS in named(data="tf.data", steps=5)
    assert "steps_per_epoch" in untested(data="tf.data", steps=5, endless=True)
    assert "nobody knows" in untested(data="tf.data")
    assert "arrays" in untested(data="arrays", steps=5)


def test_data_without_an_end_have_epochs_as_long_as_before():
    made = training(batches(3))
    observers.without_end(made)
    assert steps_of(made) == 3
    assert int(made.data.cardinality()) == -1
    assert facts_of(made).endless


def test_without_autotune_the_data_are_the_same():
    made = training(batches(3))
    with_option("autotune.enabled", False)(made)
    assert made.data.options().autotune.enabled is False
    assert steps_of(made) == 3


def test_without_validation_the_same_examples_are_trained_on():
    stopping = keras.callbacks.EarlyStopping("val_loss")
    made = training(
        rows(10), batch_size=BATCH, validation_split=0.2, callbacks=[stopping]
    )
    before = steps_of(made)
    observers.without_validation(made)
    assert steps_of(made) == before == 8
    assert not facts_of(made).validation
    assert stopping.monitor == "loss"


def test_without_validation_the_arrays_may_be_nested():
    features, labels = rows(10)
    nested = ({"one": features, "two": [features, features]}, labels, None)
    made = training(nested, batch_size=BATCH, validation_split=0.2)
    before = steps_of(made)
    observers.without_validation(made)
    assert steps_of(made) == before == 8
    assert made.data[0]["two"][1].shape == (8 * BATCH, 2)


def test_how_long_a_validation_is_is_known_for_each_kind_of_data():
    def steps(**arguments):
        return facts_of(training(rows(10), **arguments)).validation_steps

    assert steps(batch_size=4, validation_split=0.25) == 3
    assert steps(batch_size=4, validation_data=rows(5)) == 5
    assert steps(validation_data=rows(5), validation_batch_size=2) == 10
    assert steps(validation_data=batches(6)) == 6
    assert steps(validation_data=batches(6), validation_steps=2) == 2
    assert steps(validation_data=batches(6).filter(lambda x, y: True)) is None
    assert steps() == 0


def test_how_seldom_validation_comes_is_known():
    def between(frequency):
        made = training(rows(2), validation_data=rows(1), validation_freq=frequency)
        return facts_of(made).validated

    assert between(3) == 3
    assert between([2, 4, 6]) == 2


def test_validation_may_come_more_seldom_by_as_much_as_it_came():
    swap = named(validation=True, validated=2)["validation every 10 epochs"]
    assert swap.fix == "model.fit(..., validation_freq=10)"
    assert swap.after == "without validation"
    made = training(rows(2), validation_data=rows(1), validation_freq=2)
    swap.apply(made)
    assert facts_of(made).validated == 10
    # Where all of it was left out before, there is none to come seldom.
    observers.without_validation(made)
    swap.apply(made)
    assert facts_of(made).validated == 0
