import math
import random
import re

import pytest

from perfkit.measure.trial import LOSSES
from perfkit.race import job
from perfkit.race.side import COMPILED
from tests.race.built import NEW, OLD, facts, measured

TOLD = {"optimizer": "SGD", "learning rate": 0.01, "loss": "mse"}
FALLING = [(1, 2.0), (2, 1.9), (3, 1.7), (4, 1.75), (5, 1.5), (7, 1.2)]


def said(one, other=None, **options):
    return [each.said for each in job.differences(one, other or facts(), **options)]


def learning(one, other, rounds=3):
    notes = {NEW: one, OLD: other}
    run = measured(rounds=rounds, notes=notes)
    return [each.said for each in job.in_learning(run, NEW, OLD)]


def times(losses, factor):
    return [(steps, factor * loss) for steps, loss in losses]


OTHER_WORK = {
    "its model has 12,345 parameters instead of 41": {"parameters": 12_345},
    "its model has 25.6 million parameters instead of 41": {"parameters": 25_600_000},
    "of the layers of its model it has Dropout": {
        "layers": ("Dense", "Dropout", "Dense")
    },
    "of the layers of its model it lacks Dense": {"layers": ("Dense",)},
    "of the layers of its model it has LSTM and lacks Dense": {
        "layers": ("Dense", "LSTM")
    },
    "an example is 8 instead of 4": {"element": ("float32[10, 8]", "float32[10]")},
    "an example is (28, 28, 1) instead of 4": {
        "element": ("float32[10, 28, 28, 1]", "int64[10]")
    },
    "an example is 4 and one number instead of 4": {
        "element": ("float32[10, 4]", "int32[10]", "float32[10]")
    },
}
OTHERWISE = {
    "a step holds 20 examples instead of 10": {"batch": 20, "steps": 50},
    "an epoch holds 500 examples instead of 1,000": {"steps": 50},
}


@pytest.mark.parametrize("sentence", [*OTHER_WORK, *OTHERWISE])
def test_what_differs_is_said_once(sentence):
    change = (OTHER_WORK | OTHERWISE)[sentence]
    (found,) = job.differences(facts(**change), facts())
    assert found.said == sentence
    assert found.other_work is (sentence in OTHER_WORK)


def test_layers_in_another_order_are_another_model():
    (only,) = said(facts(layers=("A", "B")), facts(layers=("B", "A")))
    assert only == "of the layers of its model it has them in another order"


OWN_LOOP = {"loop": True, "parameters": 0, "layers": ()}
RAGGED = {"data": "tf.data", "open_shapes": True}
# What is known of the one side, and of the other.
SAME_JOB = {
    "nothing": ({}, {}),
    "source": ({"data": "tf.data"}, {}),
    "dtype": ({"element": ("float64[10, 4]", "int32[10, 1]")}, {}),
    "last batch": ({"steps": 101}, {}),
    "endless": ({"endless": True}, {}),
    "observers": (
        {"metrics": ("mae",), "callbacks": ("CSVLogger",), "validation": True},
        {},
    ),
    "speed": (
        {"ready_s": 9.0, "step_s": 0.5, "policy": "mixed_bfloat16", "xla": True},
        {},
    ),
    "ragged": (
        RAGGED | {"element": ("int64[10, None]", "i[10]")},
        RAGGED | {"element": ("int64[10, 9]", "i[10]")},
    ),
    "an end that nobody knows": ({"steps": None}, {}),
    "an end of the other that nobody knows": ({}, {"steps": None}),
    # They show no model.
    "loops of one's own": (OWN_LOOP, OWN_LOOP),
    "a loop of one's own": (OWN_LOOP, {}),
    "the other's own loop": ({}, OWN_LOOP),
}


@pytest.mark.parametrize(("one", "other"), SAME_JOB.values(), ids=SAME_JOB)
def test_how_the_same_work_is_done_is_no_other_job(one, other):
    assert said(facts(**one), facts(**other)) == []


def test_another_batch_that_was_asked_for_is_no_difference():
    assert said(facts(batch=20, steps=50), retuned=True) == []


@pytest.mark.parametrize(
    ("kind", "open_shapes"), [("tf.data", True), ("generator", False)]
)
def test_batches_of_open_shapes_differ_from_one_to_the_next(kind, open_shapes):
    one, other = (
        facts(
            data=kind, open_shapes=open_shapes, element=(f"int64[10, {n}]", "int64[10]")
        )
        for n in (17, 23)
    )
    assert said(one, other) == []
    image = facts(
        data=kind, open_shapes=open_shapes, element=("f[10, 8, 8, 3]", "i[10]")
    )
    assert said(image, one) == ["an example is (?, ?, ?) instead of ?"]


def test_a_loop_that_counts_shows_no_examples():
    one = facts(**OWN_LOOP, element=("int64[]",), batch=1, steps=200)
    assert said(one, one) == []
    (found,) = job.differences(one, facts())
    assert found.other_work


def test_how_the_models_are_compiled_is_held_against_each_other():
    other = TOLD | {"optimizer": "Adam", "learning rate": 0.001, "loss": "mae"}
    assert learning({COMPILED: other}, {COMPILED: TOLD}) == [
        "its learning rate is 0.001 instead of 0.01",
        "its loss is mae instead of mse",
        "its optimizer is Adam instead of SGD",
    ]
    # A rate is said without its rounding: Keras keeps them as float32.
    for rate, told in (("a schedule", "a schedule"), (0.0010000000474974513, "0.001")):
        rates = {"learning rate": rate}, {"learning rate": 0.009999999776482582}
        assert learning(*({COMPILED: TOLD | one} for one in rates)) == [
            f"its learning rate is {told} instead of 0.01"
        ]


def test_losses_far_apart_are_told_in_figures():
    (sentence,) = learning({LOSSES: times(FALLING, 10)}, {LOSSES: FALLING})
    numbers = [float(x) for x in re.findall(r"\d[\d.]*\d", sentence)]
    first = [loss for _, loss in FALLING[:5]]
    mean = sum(first) / len(first)
    assert numbers == [
        pytest.approx(10 * mean, rel=0.01),
        pytest.approx(mean, rel=0.01),
    ]
    assert sentence.startswith("its first losses are ")


def test_losses_that_waver_are_the_same():
    shuffled = [(1, 1.8), (2, 1.6), (3, 1.9), (4, 1.55), (5, 1.95)]
    assert learning({LOSSES: shuffled}, {LOSSES: FALLING}) == []
    # Exactly the same each time, and a little apart: rounding adds up.
    flat = [(n, 1.0) for n in range(1, 6)]
    assert learning({LOSSES: flat}, {LOSSES: times(flat, 1.01)}) == []
    assert len(learning({LOSSES: flat}, {LOSSES: times(flat, 1.1)})) == 1


@pytest.mark.parametrize("rounds", [1, 12])
def test_batches_in_another_order_are_seldom_taken_for_another_job(rounds):
    draw, claims = random.Random(1), 0
    for _ in range(200):
        # Each side has an order of its own, the same in every round.
        one, other = ([(n, draw.gauss(1.0, 0.3)) for n in range(1, 6)] for _ in "ab")
        claims += bool(learning({LOSSES: one}, {LOSSES: other}, rounds))
    assert claims <= 6


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_losses_that_are_no_numbers_on_one_side_alone_are_a_difference(bad):
    broken = {LOSSES: [(1, 1.0), (2, 2.0), (3, bad)]}
    flat = {LOSSES: [(n, 1.5) for n in range(1, 6)]}
    assert learning(broken, flat) == ["its first losses are no numbers instead of 1.5"]
    assert learning(flat, broken) == ["its first losses are 1.5 instead of no numbers"]
    all_broken = {LOSSES: [(n, bad) for n in range(1, 6)]}
    assert learning(all_broken, all_broken) == learning(broken, all_broken) == []


def test_what_tells_nothing_of_learning_or_the_same_is_no_difference():
    told = {COMPILED: TOLD, LOSSES: FALLING}
    assert learning(told, told) == learning(told, {}) == learning({}, told) == []
    assert learning({LOSSES: None}, {LOSSES: [(1, 1.0)]}) == []
    run = measured(notes={NEW: {LOSSES: "broken"}, OLD: {LOSSES: []}})
    assert job.losses_of(run, NEW) == job.losses_of(run, OLD) == {}


def test_losses_are_alike_but_for_rounding():
    def alike(one, other):
        run = measured(notes={NEW: {LOSSES: one}, OLD: {LOSSES: other}})
        return job.alike(run, NEW, OLD)

    assert alike(FALLING, FALLING)
    assert alike(times(FALLING, 1.00005), FALLING)
    assert not alike(times(FALLING, 1.001), FALLING)
    assert not alike([(1, math.nan)], [(1, math.nan)])
    assert not alike([], FALLING)
    # What comes later may go its own way.
    assert alike([*FALLING[:5], (7, 9.0)], FALLING)


def test_the_first_losses_are_those_of_all_rounds():
    run = measured(rounds=2, notes={NEW: {LOSSES: FALLING}})
    first = 2 * [loss for _, loss in FALLING[:5]]
    assert job.first_losses(run, NEW, OLD) == (first, [])
    assert job.first_losses(run, OLD, NEW) == ([], first)


def test_losses_of_several_steps_at_a_time_are_held_against_those_of_as_many():
    steep = [(n, 10.0 / n) for n in (1, 2, 3, 4, 5, 7, 9, 12)]
    total = lambda end: sum(  # noqa: E731
        loss * (min(n, end) - before)
        for before, (n, loss) in zip([0, *(n for n, _ in steep)], steep, strict=False)
        if before < end
    )
    fours = [(4, total(4) / 4), (8, (total(8) - total(4)) / 4), (12, 0.9)]
    run = measured(rounds=1, notes={NEW: {LOSSES: fours}, OLD: {LOSSES: steep}})
    one, other = job.first_losses(run, NEW, OLD)
    assert other[:2] == pytest.approx(one[:2])
    assert len(one) == len(other) == 3
    assert learning({LOSSES: fours}, {LOSSES: steep}) == []
    assert learning({LOSSES: steep}, {LOSSES: fours}) == []
    # What is told of too few steps is held against nothing.
    assert learning({LOSSES: fours}, {LOSSES: steep[:3]}) == []
