"""Who watches a training, its validations, and the ends of its epochs."""

import keras
import pytest

from perfkit.findings.diagnosis import WITHOUT_OBSERVERS
from perfkit.training.diagnose.causes import surroundings
from perfkit.training.diagnose.causes.surroundings import (
    CALLBACK,
    EPOCH_BOUNDARY,
    VALIDATION,
)
from perfkit.training.diagnose.epochs import Epochs
from perfkit.training.diagnose.facts import facts_of
from perfkit.training.diagnose.training import steps_of
from tests.training.diagnose.causes.offered import named, why
from tests.training.diagnose.fits import BATCH, Costs, batches, rows, training, trial


@pytest.mark.parametrize(
    ("known", "names"),
    [
        ({}, []),
        ({"callbacks": ("A",)}, ["without A"]),
        (
            {"callbacks": ("CSVLogger", "Mine", "CSVLogger")},
            ["without CSVLogger", "without Mine", "without CSVLogger (2)"],
        ),
        (
            {"metrics": ("accuracy",), "progress": True},
            ["without metrics", "without progress bar"],
        ),
    ],
)
def test_each_that_watches_is_left_out_alone_and_several_first_together(known, names):
    found = named(CALLBACK, **known)
    group = [WITHOUT_OBSERVERS] * (len(names) > 1)
    assert list(found) == [*group, *names]
    assert all(found[name].ceiling for name in group)
    assert all(found[name].after == "".join(group) for name in names)
    # A little watching is no defect.
    for change in found.values():
        assert (change.cause, change.kind) == ("callback", "by gain")
        assert change.defect_from >= 1.1
    if "without metrics" in found:
        assert "accuracy" in found["without metrics"].changes


def test_what_may_steer_the_training_is_not_to_be_left_out():
    known = {"callbacks": ("WarmUp", "CSVLogger"), "steering": ("WarmUp",)}
    found = named(CALLBACK, **known)
    steering, logger = found["without WarmUp"], found["without CSVLogger"]
    assert "from callbacks" in logger.fix
    assert "from callbacks" not in steering.fix
    assert "but keep it" in steering.mind
    assert logger.mind == ""


def called(clock, change):
    """What a callback is told at each batch of a training with a change."""
    hooks = []

    def making():
        mine = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda batch, logs: hooks.append(sorted(logs))
        )
        made = training(
            batches(2), callbacks=[mine, Costs(clock, 0.03)], metrics=["mae"]
        )
        change(made)
        return made

    trial(making, Epochs(batch=BATCH, steps=2, examples=2 * BATCH), clock, 6)
    return hooks


def test_what_is_left_out_is_called_no_more(clock):
    assert ["loss", "mae"] in called(clock, lambda training: None)
    alone = named(CALLBACK, callbacks=("LambdaCallback", "Costs"))
    assert called(clock, alone["without LambdaCallback"].apply) == []
    assert called(clock, surroundings.without_observers) == []
    hooks = called(clock, surroundings.without_metrics)
    assert hooks
    assert all(logged == ["loss"] for logged in hooks)


@pytest.mark.parametrize("followed", ["val_mae", "loss"])
def test_who_follows_a_metric_goes_on_with_the_loss(followed):
    stopping = keras.callbacks.EarlyStopping(followed, mode="max")
    made = training(batches(2), callbacks=[stopping], metrics=["mae"])
    surroundings.without_metrics(made)
    assert stopping.monitor == "loss"


def test_the_iterator_is_kept_where_keras_makes_a_new_one_each_epoch():
    known = {"data": "tf.data", "steps": 5}
    assert surroundings.ENDLESS in named(EPOCH_BOUNDARY, **known)
    assert "steps_per_epoch" in why(EPOCH_BOUNDARY, **known, endless=True)
    assert "is unknown" in why(EPOCH_BOUNDARY, data="tf.data")
    assert "arrays" in why(EPOCH_BOUNDARY, data="arrays", steps=5)
    several = {"data": "tf.data", "steps": 100, "steps_per_execution": 16}
    assert "not a multiple" in why(EPOCH_BOUNDARY, **several)


def test_data_without_an_end_have_epochs_as_long_as_before():
    made = training(batches(3))
    surroundings.without_end(made)
    assert steps_of(made) == 3
    assert int(made.data.cardinality()) == -1
    assert facts_of(made).endless


def nested(features, labels):
    return {"one": features, "two": [features, features]}, labels, None


@pytest.mark.parametrize("shaped", [lambda *arrays: arrays, nested])
def test_without_validation_the_same_examples_are_trained_on(shaped):
    stopping = keras.callbacks.EarlyStopping("val_loss")
    more = {"batch_size": BATCH, "validation_split": 0.2, "callbacks": [stopping]}
    made = training(shaped(*rows(10)), **more)
    before = steps_of(made)
    surroundings.without_validation(made)
    assert steps_of(made) == before == 8
    assert not made.arguments.keys() & {"validation_split", "validation_data"}
    assert stopping.monitor == "loss"
    features = made.data[0]["two"][1] if shaped is nested else made.data[0]
    assert features.shape == (8 * BATCH, 2)


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


def test_no_validation_says_how_often_it_came():
    (change,) = named(VALIDATION, validation=True, validated=2).values()
    assert (change.changes, change.mind) == ("No validation after every 2 epochs.", "")
    known = {"validation": True, "callbacks": ("EarlyStopping",)}
    assert "patience" in named(VALIDATION, **known)["without validation"].mind
    made = training(rows(2), validation_data=rows(1), validation_freq=[2, 4, 6])
    assert facts_of(made).validated == 2
    change.apply(made)
    assert not facts_of(made).validation
