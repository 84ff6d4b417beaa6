import re
from dataclasses import replace

import pytest

from perfkit.findings.standing import SIDES, measurement, standings
from perfkit.training.race.learning import COMPILED
from perfkit.training.race.question import differences
from perfkit.training.race.sides import LEFT
from tests.findings.made import failed, of_run
from tests.training.race.built import (
    NEW,
    OLD,
    THIRD,
    WAVERING,
    facts,
    measured,
    race,
    sides,
)

BOTH = [OLD, NEW]
THREE = sides(OLD, NEW, THIRD)


def verdict(rates, of=None, notes=None, rounds=6, **known):
    return race(of, **known).verdict(measured(rates, rounds, notes))


def against_old(rate, **more):
    return verdict({OLD: 1000.0, NEW: rate}, **more)


NOT_KNOWN = "This race does not show whether new.py is faster than old.py."
OPEN_SIZE = "new.py is {} than old.py; by how much is not known yet."
VAGUE = 3 * (4e3, 4e5)
# A rate of the new side beside 1000, the headline, how sure it is, and what it brings.
VERDICTS = {
    "faster": (
        1500.0,
        "new.py runs 1.50 times as fast as old.py.",
        ("sure", "1.48 to 1.52", NEW),
        "1,500 instead of 1,000 examples/s.",
    ),
    "slower": (
        200.0,
        "new.py takes 5.0 times as long as old.py.",
        ("sure", "4.9 to 5.1", ""),
        "200 instead of 1,000 examples/s.",
    ),
    "open": (WAVERING, NOT_KNOWN, ("not known yet", ..., ""), ...),
    # A wide interval is told without figures.
    "wide": (3 * (100.0, 10_000.0), NOT_KNOWN, ("not known yet", "", ""), ""),
    "faster, vague": (VAGUE, OPEN_SIZE.format("faster"), ("likely", "", NEW), ...),
    "slower, vague": (
        tuple(rate / 1600 for rate in VAGUE),
        OPEN_SIZE.format("slower"),
        ("likely", "", ""),
        ...,
    ),
}


@pytest.mark.parametrize(
    ("rate", "headline", "how_sure", "much"), VERDICTS.values(), ids=VERDICTS
)
def test_the_verdict_says_which_is_faster_how_sure_and_by_how_much(
    rate, headline, how_sure, much
):
    found = against_old(rate)
    assert (found.headline, found.next) == (headline, "")
    told = (found.sure, found.interval, found.winner, found.much)
    for one, expected in zip(told, (*how_sure, much), strict=True):
        assert expected in (..., one)


def test_no_difference_says_how_large_one_could_be():
    found = against_old(1000.0)
    assert found.headline == "No difference shown between new.py and old.py."
    assert re.match(
        r"If there is one, it is below \d(\.\d)? %: \S+ instead", found.much
    )
    assert found.winner == ""


def test_one_or_two_rounds_claim_nothing():
    found = against_old(800.0, rounds=2)
    assert found.headline == NOT_KNOWN
    assert (found.sure, found.interval, found.winner) == ("not known yet", "", "")
    assert "3 rounds" in found.next
    # The file says no more than the report; one of before is judged when it is shown.
    (saved,) = measured({OLD: 1000.0, NEW: 800.0}, rounds=2).comparisons
    assert saved.verdict == "too noisy to say"
    old = replace(saved, verdict="slower")
    shown = of_run(measured(rounds=2), comparisons=(old,), parameters={SIDES: BOTH})
    assert measurement(shown).comparisons == (saved,)
    assert saved in [row.comparison for row in standings(shown)]
    three = against_old(500.0, rounds=3).headline
    assert three.endswith("2.0 times as long as old.py.")
    assert against_old(1020.0, rounds=1).winner == ""
    # Two are enough where even the nearer end of the interval is far from 1.
    far = against_old(9000.0, rounds=2)
    assert far.headline == "new.py runs 9.0 times as fast as old.py."
    assert (far.winner, far.sure, far.next) == ("new.py", "sure", "")


OTHER_BATCH = {"batch": 20, "steps": 50}


def test_other_work_comes_first_and_neither_is_called_faster():
    found = against_old(3000.0, new={"parameters": 7, "element": ("f[10, 8]", "f[10]")})
    assert found.headline == (
        "new.py and old.py do different work, so neither is called faster: its model "
        "has 7 parameters instead of 41; an example is 8 instead of 4."
    )
    assert found.much == "3,000 instead of 1,000 examples/s."
    assert (found.winner, found.sure, found.interval) == ("", "", "")


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (2000.0, "Per example it runs 2.0 times as fast: "),
        (500.0, "Per example it takes 2.0 times as long: "),
        (1000.0, "Per example it shows no difference: "),
        (WAVERING, "Per example it is not shown to be faster: "),
    ],
)
def test_another_batch_is_said_first_and_rates_are_per_example(rate, said):
    found = against_old(rate, new=OTHER_BATCH)
    assert found.headline == (
        "new.py does another job than old.py: a step holds 20 examples instead of 10."
    )
    assert found.much.startswith(said)
    assert found.winner == ""


def test_how_a_side_learns_comes_first_unless_it_is_retuned():
    told = {OLD: {COMPILED: {"loss": "mse"}}, NEW: {COMPILED: {"loss": "mae"}}}
    found = against_old(2000.0, notes=told)
    assert found.headline.endswith("old.py: its loss is mae instead of mse.")
    assert found.winner == ""
    retuned = {"of": sides(OLD, NEW, retuned=True)}
    assert against_old(2000.0, **retuned).warnings == ()
    found = against_old(2000.0, notes=told, new={"batch": 40, "steps": 25}, **retuned)
    assert found.headline == "new.py runs 2.0 times as fast as old.py."
    assert found.winner == NEW
    (warning,) = found.warnings
    assert warning.startswith("new.py learns differently: tune its learning rate again")


def test_of_three_the_fastest_is_named_or_else_the_nearest():
    found = verdict({OLD: 1000.0, NEW: 1300.0, THIRD: 2000.0}, THREE)
    assert found.headline == "third.py runs 2.0 times as fast as old.py."
    assert found.winner == THIRD
    found = verdict({OLD: 1000.0, NEW: 500.0, THIRD: 200.0}, THREE)
    assert found.headline == ("All are slower than old.py: new.py, third.py.")
    assert found.much == "Nearest is new.py: 500 instead of 1,000 examples/s."
    assert found.winner == ""


@pytest.mark.parametrize("rate", [200.0, 900.0])
@pytest.mark.parametrize("new_rate", [500.0, 1500.0])
def test_of_three_each_that_does_another_job_is_said(rate, new_rate):
    rates = {OLD: 1000.0, NEW: new_rate, THIRD: rate}
    found = verdict(rates, THREE, third={"parameters": 7})
    assert found.winner == (NEW if new_rate > 1000 else "")
    said = "third.py does another job than old.py: its model has 7 parameters instead"
    assert [warning.startswith(said) for warning in found.warnings] == [True]
    assert THIRD not in [warning[:8] for warning in verdict(rates, THREE).warnings]


def test_a_side_that_failed_is_said_and_the_rest_is_told():
    broken = failed(THIRD, "crashed", "raised ValueError: no data")
    found = race(THREE).verdict(measured({OLD: 1000.0, NEW: 2000.0}, trials=[broken]))
    assert found.headline == "new.py runs 2.0 times as fast as old.py."
    assert '"third.py" raised ValueError: no data.' in found.because
    broken = failed(NEW, "out-of-memory", "ran out of memory")
    found = race().verdict(measured({OLD: 1000.0}, trials=[broken]))
    assert found.headline.startswith("There is no answer yet")
    assert found.because == ('"new.py" ran out of memory.',)
    assert (found.next[:4], found.winner) == ("Look", "")


def test_code_of_the_working_tree_in_a_commit_is_warned_of():
    (warning,) = against_old(2000.0, notes={OLD: {LEFT: ["mine", "other"]}}).warnings
    assert warning.startswith(f"{OLD} ran with mine, other from the working tree, so")
    # So is code that was edited while it ran.
    (warning,) = against_old(2000.0, of=sides(OLD, NEW, code="as it began")).warnings
    assert warning.startswith("make_training changed during this run, so it mixes")


# What two sides do not do alike.


OTHER_WORK = {
    "its model has 12,345 parameters instead of 41": {"parameters": 12_345},
    "its model has Dropout": {"layers": ("Dense", "Dropout", "Dense")},
    "its model lacks Dense": {"layers": ("Dense",)},
    "its model has LSTM and lacks Dense": {"layers": ("Dense", "LSTM")},
    "an example is 8 instead of 4": {"element": ("float32[10, 8]", "float32[10]")},
    "an example is (28, 28, 1) instead of 4": {
        "element": ("float32[10, 28, 28, 1]", "int64[10]")
    },
    "an example is 4 and one number instead of 4": {
        "element": ("float32[10, 4]", "int32[10]", "float32[10]")
    },
}
OTHERWISE = {
    "a step holds 20 examples instead of 10": OTHER_BATCH,
    "an epoch holds 500 examples instead of 1,000": {"steps": 50},
}


@pytest.mark.parametrize("sentence", [*OTHER_WORK, *OTHERWISE])
def test_what_differs_is_said_once(sentence):
    other = facts(**(OTHER_WORK | OTHERWISE)[sentence])
    (found,) = differences(other, facts())
    assert found == (sentence, sentence in OTHER_WORK)
    # A batch that was asked for is no difference.
    assert any(differences(other, facts(), retuned=True)) is ("a step" not in sentence)


def test_layers_in_another_order_are_other_work():
    one, other = (facts(layers=layers) for layers in (("A", "B"), ("B", "A")))
    (found,) = differences(one, other)
    assert found.sentence.endswith("its model has its layers in another order")


OWN_LOOP = {"loop": True, "parameters": 0, "layers": ()}
RAGGED = {"data": "tf.data", "open_shapes": True}
WATCHED = {"metrics": ("mae",), "callbacks": ("CSVLogger",), "validation": True}
SPEED = {"ready_s": 9.0, "step_s": 0.5, "policy": "mixed_bfloat16", "xla": True}
# What is known of the one side, and of the other.
SAME_JOB = {
    "nothing": ({}, {}),
    "listed inputs": ({"layers": ("InputLayer", "Dense", "Dense")}, {}),
    "source": ({"data": "tf.data"}, {}),
    "dtype": ({"element": ("float64[10, 4]", "int32[10, 1]")}, {}),
    "last batch": ({"steps": 101}, {}),
    "endless": ({"endless": True}, {}),
    "observers": (WATCHED, {}),
    "speed": (SPEED, {}),
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
    assert list(differences(facts(**one), facts(**other))) == []


@pytest.mark.parametrize("kind", [RAGGED, {"data": "generator"}], ids=str)
def test_batches_of_open_shapes_differ_from_one_to_the_next(kind):
    one, other, image = (
        facts(**kind, element=(f"int64[10, {sizes}]", "int64[10]"))
        for sizes in ("17", "23", "8, 8, 3")
    )
    assert list(differences(one, other)) == []
    (found,) = differences(image, one)
    assert found.sentence == "an example is (?, ?, ?) instead of ?"


def test_a_loop_that_counts_shows_no_examples():
    one = facts(**OWN_LOOP, element=("int64[]",), batch=1, steps=200)
    assert list(differences(one, one)) == []
    (found,) = differences(one, facts())
    assert found.other_work
    # Of its own loop nobody knows how many examples a step has.
    same = {"loop": True, "batch": 1, "parameters": 0, "layers": ()}
    said = against_old(2000.0, old=same, new=same)
    assert said.much == "2,000 instead of 1,000 steps/s."
    assert "does not see its losses" in said.warnings[0]


def test_who_alone_fills_a_cache_is_told():
    cached = facts(pipeline={"cached": True})
    told = against_old(2000.0, new={"pipeline": {"cached": True}}).warnings
    assert [text.partition(" fills")[0] for text in told] == ["new.py"]
    both = {"pipeline": cached.pipeline}
    assert against_old(2000.0, old=both, new=both).warnings == ()
