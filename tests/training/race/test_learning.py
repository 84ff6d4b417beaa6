"""How sides learn: the losses that trials note, compared, and the time to a loss."""

import itertools
import math
import re
from dataclasses import replace

import keras
import numpy as np
import pytest

import perfkit
from perfkit.engine.trial import LOSSES
from perfkit.errors import BadParameterError
from perfkit.training.race.learning import (
    COMPILED,
    Learning,
    alike,
    describe,
    examples_to,
    in_learning,
)
from tests.findings.made import finding as any_finding
from tests.findings.made import of_run
from tests.training.race.built import NEW, OLD, THIRD, measured, race, sides

GOAL, MSE = 1.0, "mean_squared_error"
TOLD = {"optimizer": "SGD", "learning rate": 0.01, "loss": "mse"}
FALLING = [(1, 2.0), (2, 1.9), (3, 1.7), (4, 1.75), (5, 1.5), (7, 1.2)]
SHUFFLED = [(1, 1.8), (2, 1.6), (3, 1.9), (4, 1.55), (5, 1.95)]
FLAT = [(n, 1.0) for n in range(1, 6)]


def told(learning):
    return {note.name: note.value for note in learning.news()}


def test_losses_come_ever_more_seldom_as_means_since_the_last():
    learning, losses = Learning(list), np.arange(1.0, 1001.0)
    for step in range(1, 1001):
        learning.reach(step, {"loss": losses[:step].mean()})
    points = told(learning)[LOSSES]
    steps = [step for step, _ in points]
    assert steps[:5] == [1, 2, 3, 4, 5]
    assert len(steps) < 40
    assert (np.diff(np.diff(steps)) >= -1).all()
    for (before, _), (step, loss) in itertools.pairwise(points):
        assert loss == pytest.approx(losses[before:step].mean())


def test_examples_are_counted_on_from_epoch_to_epoch():
    learning = Learning(list, batch=32)
    for _ in range(3):
        learning._begin_epoch()
        for step in (1, 2):
            learning.reach(step, {"loss": 7.0})
    assert told(learning)[LOSSES] == [(32 * n, pytest.approx(7.0)) for n in range(1, 6)]
    # What was told is told once, and without a loss there is nothing to tell.
    for logs in (None, {}, {"accuracy": 1.0}):
        learning.reach(99, logs)
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
    learning = Learning(lambda: (one, (x, y), given))
    model, data, arguments = learning()
    model.fit(*data, **arguments)
    assert counting.steps == 6
    # Another way: one batch after the other, by hand.
    losses = []
    for batch in [slice(n, n + 10) for n in (0, 10, 20)] * 2:
        other.reset_metrics()
        losses.append(float(other.train_on_batch(x[batch], y[batch])))
    notes = told(learning)
    assert notes[LOSSES] == [
        (n, pytest.approx(loss, rel=1e-3)) for n, loss in enumerate(losses[:5], 1)
    ]
    compiled = {"optimizer": "Adam", "learning rate": pytest.approx(0.01), "loss": MSE}
    assert notes[COMPILED] == compiled
    # So it is by another name of the loss, and where a scale of that is around it.
    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.01))
    for loss in MSE, keras.losses.mean_squared_error, keras.losses.MeanSquaredError():
        assert describe(network(scaled, loss)) == compiled
    divergence = describe(network("sgd", keras.losses.KLDivergence()))
    assert divergence["loss"] == "kl_divergence"
    assert "loss" not in describe(network("sgd", ["mse"]))


ONE = Counting()


@pytest.mark.parametrize("given", [None, ONE, [ONE], (ONE,)])
def test_callbacks_are_kept_however_they_are_given(given):
    arguments = {} if given is None else {"callbacks": given}
    *_, made = Learning(lambda: (1, 2, arguments))()
    *kept, mine = made["callbacks"]
    assert kept == [ONE] * (given is not None)
    assert isinstance(mine, keras.callbacks.LambdaCallback)
    # What was handed over is the user's: nothing is put into it.
    assert arguments.get("callbacks") is given
    assert given in (None, ONE, [ONE], (ONE,))
    # But a list of Keras's stays one.
    listed = keras.callbacks.CallbackList([ONE])
    *_, made = Learning(lambda: (1, 2, {"callbacks": listed}))()
    assert made["callbacks"] is listed
    assert len(listed.callbacks) == 2


def compare(one, other, rounds=3):
    run = measured(rounds=rounds, notes={NEW: one, OLD: other})
    return [each.sentence for each in in_learning(run, NEW, OLD)]


def learns(losses, other, rounds=3):
    return compare({LOSSES: losses}, {LOSSES: other}, rounds)


def times(losses, factor):
    return [(steps, factor * loss) for steps, loss in losses]


def test_how_the_models_are_compiled_is_held_against_each_other():
    other = {"optimizer": "Adam", "learning rate": 0.001, "loss": "mae"}
    assert compare({COMPILED: other}, {COMPILED: TOLD}) == [
        "its learning rate is 0.001 instead of 0.01",
        "its loss is mae instead of mse",
        "its optimizer is Adam instead of SGD",
    ]
    # A rate is said without its rounding: Keras keeps them as float32.
    now = {COMPILED: TOLD | {"learning rate": 0.009999999776482582}}
    for rate, said in (("a schedule", "a schedule"), (0.0010000000474974513, "0.001")):
        one = {COMPILED: TOLD | {"learning rate": rate}}
        assert compare(one, now) == [f"its learning rate is {said} instead of 0.01"]


def test_losses_are_another_job_where_they_lie_further_apart_than_they_waver():
    (sentence,) = learns(times(FALLING, 10), FALLING)
    numbers = [float(x) for x in re.findall(r"\d[\d.]*\d", sentence)]
    mean = sum(loss for _, loss in FALLING[:5]) / 5
    assert numbers == [pytest.approx(n * mean, rel=0.01) for n in (10, 1)]
    assert sentence.startswith("its first losses are ")
    assert learns(SHUFFLED, FALLING) == []
    # Exactly the same each time, and a little apart: rounding adds up.
    assert learns(FLAT, times(FLAT, 1.01)) == []
    assert len(learns(FLAT, times(FLAT, 1.1))) == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_losses_that_are_no_numbers_on_one_side_alone_are_a_difference(bad):
    broken, flat = [(1, 1.0), (2, 2.0), (3, bad)], times(FLAT, 1.5)
    assert learns(broken, flat) == ["its first losses are no numbers instead of 1.5"]
    assert learns(flat, broken) == ["its first losses are 1.5 instead of no numbers"]
    all_broken = [(n, bad) for n in range(1, 6)]
    assert learns(all_broken, all_broken) == learns(broken, all_broken) == []


def test_what_tells_nothing_of_learning_or_the_same_is_no_difference():
    told = {COMPILED: TOLD, LOSSES: FALLING}
    assert compare(told, told) == compare(told, {}) == compare({}, told) == []
    assert learns(None, [(1, 1.0)]) == learns("broken", []) == []


@pytest.mark.parametrize(
    ("losses", "are_alike"),
    [
        (FALLING, True),
        (times(FALLING, 1.00005), True),
        (times(FALLING, 1.001), False),
        ([(n, math.nan) for n, _ in FALLING], False),
        ([], False),
        # What comes later may go its own way.
        ([*FALLING[:5], (7, 9.0)], True),
    ],
)
def test_the_first_losses_are_alike_but_for_rounding(losses, are_alike):
    run = measured(notes={NEW: {LOSSES: losses}, OLD: {LOSSES: FALLING}})
    assert alike(run, NEW, OLD) is are_alike


def falling(needed, start=1.0):
    """Means of a loss that falls as 1/root of the examples, at 1 after ``needed``."""
    ends = [32.0 * 1.3**n for n in range(31)]
    # The mean of that curve between two places, by its integral.
    roots = [2 * math.sqrt(needed * end) for end in [0.0, *ends]]
    means = (np.diff(roots) / np.diff([0.0, *ends])).tolist()
    return [(ends[0], start * means[0]), *zip(ends[1:], means[1:], strict=True)]


def raced(needed, rates=None, rounds=5):
    """A race; of each side the examples that its trials need, by round."""
    run = measured(rates or dict.fromkeys(needed, 1000.0), rounds)
    told = {
        (name, number): {LOSSES: falling(one, 1 + number / 100)}
        for name, each in needed.items()
        for number, one in enumerate(each, 1)
    }
    trials = [replace(t, notes=told.get((t.variant, t.round), {})) for t in run.trials]
    made = of_run(replace(run, trials=tuple(trials)), experiment="race")
    return replace(made, parameters=race(sides(*needed)).parameters)


def with_losses(made, change):
    """The same race, in whose trials other losses were noted."""
    told = [(trial, {LOSSES: change(trial.notes.get(LOSSES))}) for trial in made.trials]
    trials = tuple(replace(trial, notes=notes) for trial, notes in told)
    return replace(made, trials=trials)


def wavering(middle, by=0.1):
    return [middle * (1 + by * sign) for sign in (-1, 0, 1, -0.5, 0.5)]


@pytest.mark.parametrize("needed", [100.0, 777.0, 12_345.0])
def test_the_place_of_a_loss_is_read_off_between_means(needed):
    assert examples_to(GOAL, falling(needed)) == pytest.approx(needed, rel=0.1)


def test_a_loss_that_comes_back_was_not_reached_before():
    points = [(10, 2.0), (20, 0.9), (30, 1.5), (40, 0.9), (50, 0.8)]
    assert 25 < examples_to(GOAL, points) < 35
    assert examples_to(GOAL, points[:3]) is None
    assert examples_to(GOAL, []) is None
    assert examples_to(GOAL, [(10, 0.5), (20, 0.4)]) == 10
    assert examples_to(GOAL, [(10, 0.5), (20, math.nan)]) is None
    assert examples_to(GOAL, [(10, math.nan), (20, 0.5)]) == 15


def told_of(made):
    """What the table says of each side."""
    table = perfkit.time_to_loss(made, GOAL).set_index("side")
    return {name: list(row) for name, row in table.astype(object).fillna("").iterrows()}


def test_fewer_examples_and_faster_steps_are_held_together():
    asked = {
        OLD: wavering(3000.0),
        NEW: wavering(1000.0, by=0.05),
        # What needs more is slower, however fast its steps.
        THIRD: wavering(9000.0),
    }
    rows = told_of(raced(asked, {OLD: 1000.0, NEW: 500.0, THIRD: 1000.0}))
    for name, needed, rate in ((OLD, 3e3, 1e3), (NEW, 1e3, 500.0), (THIRD, 9e3, 1e3)):
        examples, seconds, _ = rows[name]
        assert examples == pytest.approx(needed, rel=0.1)
        assert seconds == pytest.approx(needed / rate, rel=0.1)
    assert re.fullmatch(r"1\.[45]\d?\S* \(1\.\d+ to 1\.\d+\), faster", rows[NEW][2])
    assert re.fullmatch(r"0\.3\d\S* \(0\.\d+ to 0\.\d+\), slower", rows[THIRD][2])
    assert rows[OLD][2] == ""


SAME_SEEDS = with_losses(
    raced({OLD: [3000.0] * 5, NEW: [300.0] * 5}), lambda losses: losses and losses[1:]
)
TOO_FEW = raced({OLD: wavering(3000.0)[:2], NEW: wavering(300.0)[:2]}, rounds=2)
NOT_ALWAYS = raced({OLD: wavering(300.0), NEW: [300.0, 300.0, 1e9, 300.0, 300.0]})
LIKE_SEEDS = raced({OLD: [500, 3000, 900, 4000, 700], NEW: [3000, 500, 4000, 700, 900]})


# A file may say anything of its losses.
ODD = (None, "x", [[1]], [["a", "b"]], {"a": 1}, [[-1, 2]])


@pytest.mark.parametrize(
    ("made", "is_reached", "said"),
    [
        (LIKE_SEEDS, True, "too noisy to say"),
        # Fewer than three seeds claim nothing, and trials of one seed are one.
        (TOO_FEW, True, ""),
        (SAME_SEEDS, True, ""),
        (NOT_ALWAYS, False, ""),
        *((with_losses(LIKE_SEEDS, lambda _, n=noted: n), False, "") for noted in ODD),
    ],
)
def test_what_does_not_tell_which_is_sooner_claims_nothing(made, is_reached, said):
    examples, seconds, compared = told_of(made)[NEW]
    assert (examples != "", seconds != "") == (is_reached, is_reached)
    assert compared.endswith(said)
    assert not re.search("faster|slower", compared)


def test_what_is_no_race_and_no_loss_is_refused():
    for found in any_finding(), None:
        with pytest.raises(BadParameterError, match=r"takes the finding of a race"):
            perfkit.time_to_loss(found, GOAL)
    for loss in math.nan, "0.5":
        with pytest.raises(BadParameterError, match=r"give a number, such as 0\.5"):
            perfkit.time_to_loss(LIKE_SEEDS, loss)


def test_two_copies_are_seldom_told_apart():
    draw, claims = np.random.default_rng(7), 0
    for _ in range(100):
        each = {n: list(1000 * np.exp(draw.normal(0, 0.2, 5))) for n in (OLD, NEW)}
        claims += bool(re.search("faster|slower", told_of(raced(each))[NEW][2]))
    assert claims <= 12
