import itertools

import keras
import numpy as np
import pytest

from perfkit.measure.trial import LOSSES
from perfkit.race.side import COMPILED, Learning, Side, _compiled


def told(learning):
    return {note.name: note.value for note in learning.news()}


def learning_of(maker=lambda: None, **options):
    return Learning(Side(name="a", maker=maker), **options)


def test_losses_come_ever_more_seldom_as_means_since_the_last():
    learning, losses = learning_of(), np.arange(1.0, 1001.0)
    for step in range(1, 1001):
        learning.reach(step, {"loss": losses[:step].mean()})
    found = told(learning)[LOSSES]
    steps = [step for step, _ in found]
    assert steps[:5] == [1, 2, 3, 4, 5]
    assert len(steps) < 40
    gaps = np.diff(steps)
    assert (np.diff(gaps) >= -1).all()
    for (before, _), (step, loss) in itertools.pairwise(found):
        assert loss == pytest.approx(losses[before:step].mean())


def test_examples_are_counted_on_from_epoch_to_epoch():
    learning = learning_of(batch=32)
    for _ in range(3):
        learning._begin_epoch()
        for step in (1, 2):
            learning.reach(step, {"loss": 7.0})
    losses = told(learning)[LOSSES]
    assert losses == [(32 * n, pytest.approx(7.0)) for n in range(1, 6)]


def test_what_was_told_is_told_once():
    learning = learning_of()
    learning.reach(1, {"loss": 1.0})
    assert set(told(learning)) == {LOSSES}
    assert told(learning) == {}
    learning.reach(2, {"loss": 1.0})
    assert set(told(learning)) == {LOSSES}


@pytest.mark.parametrize("logs", [None, {}, {"accuracy": 1.0}])
def test_a_training_without_a_loss_tells_none(logs):
    learning = learning_of()
    learning.reach(1, logs)
    assert LOSSES not in told(learning)


@pytest.mark.parametrize("made", [None, "loop", (1,), [1, 2]])
def test_what_is_no_model_with_data_is_left_as_it_is(made):
    learning = learning_of(lambda: made)
    assert learning() is made
    assert told(learning) == {}


class Counting(keras.callbacks.Callback):
    steps = 0

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1


def network(optimizer, loss):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(optimizer, loss)
    return model


def test_a_real_fit_tells_its_losses_and_keeps_its_callbacks():
    keras.utils.set_random_seed(1)
    one, other = (network(keras.optimizers.Adam(0.01), "mse") for _ in "ab")
    other.set_weights(one.get_weights())
    x = np.random.default_rng(1).normal(size=(30, 4)).astype("float32")
    y, counting = x.sum(1), Counting()
    given = {"epochs": 2, "batch_size": 10, "shuffle": False, "verbose": 0}
    given["callbacks"] = [counting]
    learning = learning_of(lambda: (one, (x, y), given))
    model, data, arguments = learning()
    model.fit(*data, **arguments)
    assert counting.steps == 6
    # Another way: one batch after the other, by hand.
    losses = []
    for batch in [slice(n, n + 10) for n in (0, 10, 20)] * 2:
        other.reset_metrics()
        losses.append(float(other.train_on_batch(x[batch], y[batch])))
    found = told(learning)
    assert found[LOSSES] == [
        (n, pytest.approx(loss, rel=1e-3)) for n, loss in enumerate(losses[:5], 1)
    ]
    assert found[COMPILED]["optimizer"] == "Adam"
    assert found[COMPILED]["learning rate"] == pytest.approx(0.01)
    assert found[COMPILED]["loss"] == "mse"


ONE = Counting()


@pytest.mark.parametrize("given", [None, ONE, [ONE], (ONE,)])
def test_callbacks_are_kept_however_they_are_given(given):
    arguments = {} if given is None else {"callbacks": given}
    *_, made = learning_of(lambda: (1, 2, arguments))()
    *kept, mine = made["callbacks"]
    assert kept == [ONE] * (given is not None)
    assert isinstance(mine, keras.callbacks.LambdaCallback)
    # What was handed over is the user's: nothing is put into it.
    assert arguments.get("callbacks") is given
    assert given in (None, ONE, [ONE], (ONE,))


def test_a_list_of_keras_stays_one():
    counting = Counting()
    listed = keras.callbacks.CallbackList([counting])
    learning = learning_of(lambda: (1, 2, {"callbacks": listed}))
    *_, arguments = learning()
    assert arguments["callbacks"] is listed
    assert len(listed.callbacks) == 2


def test_how_a_model_was_compiled_is_words_and_numbers():
    falling = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 1)
    loss = keras.losses.MeanSquaredError()
    found = _compiled(network(keras.optimizers.SGD(falling), loss))
    assert found["learning rate"] == "ExponentialDecay from 0.1"
    assert found["loss"] == "MeanSquaredError"
    found = _compiled(network("rmsprop", lambda y, p: (y - p) ** 2))
    assert found["learning rate"] == pytest.approx(0.001)
    assert found["loss"] == "function"
