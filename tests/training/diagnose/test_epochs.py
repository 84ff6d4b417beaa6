import functools
import queue
import threading
import weakref
from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf

from perfkit.engine.steady import steady
from perfkit.training.diagnose.epochs import SHORTENED, Epochs, _end_aside
from perfkit.training.diagnose.facts import Facts, epochs_for, facts_of
from tests.training.diagnose.fits import BATCH, Costs, batches, training, trial

STEP_S, END_S, VALIDATION_S = 0.01, 0.2, 0.02
known = functools.partial(Facts, batch=BATCH, step_s=STEP_S)


def measured(clock, epochs, steps, validation=0, data=None, begin=0.0, **arguments):
    costs = Costs(clock, STEP_S, END_S, VALIDATION_S, begin)
    if validation:
        arguments["validation_data"] = batches(validation)

    def making():
        return training(data or batches(steps), callbacks=[costs], **arguments)

    return trial(making, epochs, clock)


def rate(found):
    part = steady(found)
    return part.with_pauses(part.pauses_s).rate


def about(steps, more_s=0.0, rel=0.01):
    """The rate of epochs of so many steps that take so long besides."""
    return pytest.approx(steps * BATCH / (steps * STEP_S + END_S + more_s), rel=rel)


@pytest.mark.parametrize("steps", [2, 12, 200])
@pytest.mark.parametrize("validation", [0, 10])
def test_the_end_of_an_epoch_has_its_share_however_long_epochs_are(
    clock, steps, validation
):
    watched = {"validation_steps": validation, "validated": bool(validation)}
    epochs = epochs_for(known(steps=steps, **watched))
    found = measured(clock, epochs, steps, validation=validation)
    assert rate(found) == about(steps, validation * VALIDATION_S)
    assert SHORTENED not in found.notes


def test_long_epochs_are_ended_early_and_short_ones_are_whole():
    long, short = epochs_for(known(steps=10_000)), epochs_for(known(steps=5))
    assert (long.trial_steps, long.has_epoch_ticks) == (35, False)
    assert (short.trial_steps, short.has_epoch_ticks) == (None, True)


def test_a_long_validation_is_shortened_and_its_cost_scaled_up(clock):
    facts = known(steps=40, validation_steps=100, validated=1)
    found = measured(clock, epochs_for(facts), 40, validation=100, begin=0.5)
    assert 0 < found.notes[SHORTENED] < 0.3
    # What comes before its first batch comes once, however many batches there are.
    assert rate(found) == about(40, 100 * VALIDATION_S + 0.5, 0.02)
    assert max(found.pauses["validation"]) < 100 * VALIDATION_S / 2


@pytest.mark.parametrize("validated", [5, 1], ids=["as given", "by a change"])
def test_a_validation_that_comes_seldom_costs_each_epoch_less(clock, validated):
    facts = known(steps=20, validation_steps=10, validated=validated)
    found = measured(clock, epochs_for(facts), 20, validation=10, validation_freq=5)
    assert rate(found) == about(20, 10 * VALIDATION_S / 5)


def test_of_a_long_validation_of_unknown_length_nothing_is_claimed(clock):
    facts = known(steps=40, validation_steps=None, validated=1)
    found = measured(clock, epochs_for(facts), 40, validation=100)
    assert "validation" not in found.recurring


def test_epochs_of_unknown_length_are_counted_as_they_end(clock):
    unknown = batches(12).filter(lambda x, y: True)
    assert rate(measured(clock, Epochs(batch=BATCH), 12, data=unknown)) == about(12)


class OwnStep(keras.Sequential):
    """Updates its weights as often as it likes, and not always by its optimizer."""

    updates = 0

    def train_step(self, data):
        features, targets = data
        for _ in range(self.updates):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(features, training=True) - targets) ** 2)
            weights = self.trainable_variables
            gradients = tape.gradient(loss, weights)
            self.optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return {"loss": 0.0}


class Twice(OwnStep):
    updates = 2


@pytest.mark.parametrize(
    ("kind", "gathered", "steps", "held"),
    [
        # The last execution holds fewer; the first ends what the epoch's end takes.
        (keras.Sequential, None, 20, {4 * BATCH}),
        # The optimizer does not count these steps.
        (OwnStep, None, 32, {16 * BATCH}),
        (Twice, None, 32, {16 * BATCH}),
        (keras.Sequential, 8, 32, {16 * BATCH}),
    ],
)
def test_an_execution_counts_no_more_and_no_fewer_steps_than_it_made(
    clock, kind, gathered, steps, held
):
    unknown = batches(steps).filter(lambda x, y: True)

    def made_at_a_time():
        made = training(unknown, callbacks=[Costs(clock, 16 * STEP_S)])
        made.model = kind([keras.Input((2,)), keras.layers.Dense(1)])
        optimizer = keras.optimizers.SGD(gradient_accumulation_steps=gathered)
        made.model.compile(optimizer, "mse", steps_per_execution=16)
        return made

    assert facts_of(made_at_a_time()).counted == (steps == 20)
    found = trial(made_at_a_time, Epochs(batch=BATCH), clock, most=12)
    assert {examples for _, examples in found.ticks if examples} == held


def test_what_an_iterator_holds_is_let_go_in_another_thread():
    told, held = queue.SimpleQueue(), set()
    weakref.finalize(held, lambda: told.put(threading.get_ident()))
    _end_aside(SimpleNamespace(_iterator_resource=held))
    del held
    assert told.get(timeout=60) != threading.get_ident()
