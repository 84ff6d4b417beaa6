import re

import pytest

from perfkit.measure.host import Environment, Place
from perfkit.measure.measurement import Measurement
from perfkit.measure.trial import FIRST_STEP_S
from perfkit.race import why
from perfkit.race.rounds import ceilings, without
from perfkit.race.side import MADE_S, Side
from tests.diagnosis.measurements import in_rounds, stepping
from tests.race.built import NEW, OLD, facts, make_training, measured, sides

INPUT, MANY, WATCHED = "without input", "16 steps at a time", "without observers"
FACTS = {OLD: facts(), NEW: facts()}


def split_up(**steps):
    """A run of both sides; seconds of a step as they are, then by what is left out."""
    seconds = {}
    for side, known in ((OLD, steps["old"]), (NEW, steps["new"])):
        changes = {one.name: without(side, one) for one in ceilings(FACTS[side])}
        seconds |= {changes.get(name, side): step_s for name, step_s in known.items()}

    def make(name, like, number):
        return stepping(name, number, seconds[like], setup_s=1.0)

    return in_rounds(seconds, make, rounds=4)


def rows(table):
    return {first: rest for first, *rest in table.rows}


def test_the_parts_of_a_step_are_what_leaving_them_out_took_away():
    run = split_up(
        old={"": 0.010, INPUT: 0.004, MANY: 0.00906},
        new={"": 0.005, INPUT: 0.00499, MANY: 0.00406},
    )
    old, new = (why.parts(s, FACTS[s.name], run) for s in sides())
    assert old["input"].seconds == pytest.approx(0.006, rel=0.02)
    assert new["input"].seconds is None
    assert new["input"].high < 0.001
    for parts in (old, new):
        assert parts["dispatch"].seconds == pytest.approx(0.001, rel=0.05)
    said, fold = why.where(sides(), FACTS, run)
    assert said.startswith("The difference lies in waiting for input: at most ")
    assert re.search(r" of a step in new\.py, 6 ms \(.*\) in old\.py\.$", said)
    (table,) = fold.tables
    assert table.headings == ("part of a step", OLD, NEW)
    assert rows(table)["waiting for input"][0].startswith("6 ms (")


def test_dispatch_is_named_where_that_is_what_differs():
    run = split_up(
        old={"": 0.010, INPUT: 0.009, MANY: 0.0055},
        new={"": 0.0055, INPUT: 0.0045, MANY: 0.0054},
    )
    said, _ = why.where(sides(), FACTS, run)
    assert said.startswith("The difference lies in dispatch overhead: ")


def test_no_part_is_named_where_none_is_shown_to_differ():
    run = split_up(
        old={"": 0.010, INPUT: 0.009, MANY: 0.0095},
        new={"": 0.005, INPUT: 0.004, MANY: 0.0045},
    )
    said, fold = why.where(sides(), FACTS, run)
    assert said == ""
    assert fold.tables[0].rows


def test_a_part_explains_nothing_that_is_larger_in_the_faster_side_or_is_small():
    for old, new in (
        # Dispatch of 0.5 ms, then of 4 ms in what is faster all the same.
        (
            {"": 0.020, INPUT: 0.019, MANY: 0.0195},
            {"": 0.012, INPUT: 0.011, MANY: 8e-3},
        ),
        # Of 8 ms that they differ by, dispatch is 0.6.
        (
            {"": 0.020, INPUT: 0.019, MANY: 0.0190},
            {"": 0.012, INPUT: 0.011, MANY: 0.0118},
        ),
    ):
        said, fold = why.where(sides(), FACTS, split_up(old=old, new=new))
        assert said == ""
        assert fold.tables[0].rows


def test_without_the_parts_of_both_nothing_is_explained():
    said, fold = why.where(sides(), FACTS, measured({OLD: 1000.0, NEW: 2000.0}))
    assert (said, fold.sentences, fold.tables) == ("", (), ())
    alone = split_up(old={"": 0.010, INPUT: 0.004}, new={"": 0.005})
    assert why.where(sides(), FACTS, alone)[0] == ""


def started(old, new, ends=(0.0, 0.0), wavers=(0.0,) * 5):
    """Sides with these ``(made, first step, step)`` in seconds.

    In each round the first step of the first wavers by so much, of the other the other
    way.
    """

    def make(name, like, number):
        (made, first, step), end = {OLD: (old, ends[0]), NEW: (new, ends[1])}[like]
        first += {OLD: 1, NEW: -1}.get(name, 0) * wavers[number - 1]
        notes = {MADE_S: made, FIRST_STEP_S: first}
        return stepping(name, number, step, [end], setup_s=1.0, notes=notes)

    return in_rounds((OLD, NEW), make, len(wavers))


def test_set_up_first_step_step_and_end_of_an_epoch_are_told_apart():
    run = started((0.5, 0.8, 0.01), (2.5, 5.0, 0.005), ends=(0.2, 0.3))
    (table,) = why.starting(sides(), FACTS, run).tables
    assert table.headings == ("", "set-up", "first step", "step", "end of an epoch")
    found = rows(table)
    assert found[OLD][:2] == ["500 ms", "300 ms"]
    assert found[NEW][:2] == ["2.5 s", "2.5 s"]
    # A real epoch has 100 steps, and its end is shared out over them.
    assert [found[name][2] for name in (OLD, NEW)] == ["12 ms", "8 ms"]


def test_what_nobody_told_of_starting_is_unknown():
    (table,) = why.starting(sides(), FACTS, measured({OLD: 1e3, NEW: 2e3})).tables
    assert rows(table)[OLD] == ["?", "?", "10 ms", "?"]
    assert why.starting(sides(), FACTS, Measurement(variants=())).tables[0].rows == ()


def test_from_how_many_steps_on_a_late_starter_is_ahead():
    run = started((0.1, 0.2, 0.010), (1.0, 1.2, 0.005))
    # Adding up one step after the other says when.
    late = next(n for n in range(1, 999) if 1.2 + n * 0.005 < 0.2 + n * 0.010)
    (said,) = why.starting(sides(), FACTS, run).sentences
    pattern = r"new\.py starts later than old\.py and has caught up after (\d+) steps "
    assert int(re.match(pattern, said)[1]) == pytest.approx(late, abs=3)


SLOW, FAST = 0.010, 0.005


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ((1.0, 1.2, FAST), (0.1, 0.2, SLOW), "old.py starts later than new.py and has"),
        ((1.0, 1.2, SLOW), (0.1, 0.2, FAST), "new.py also starts no later than old.py"),
        ((0.1, 0.2, SLOW), (1.0, 1.2, SLOW), None),
    ],
    ids=["the first catches up", "nothing to pay back", "steps that are alike"],
)
def test_who_pays_what_back_is_said(old, new, said):
    sentences = why.starting(sides(), FACTS, started(old, new)).sentences
    assert len(sentences) == (said is not None)
    assert all(one.startswith(said) for one in sentences)


@pytest.mark.parametrize("later_s", [0.02, -0.02])
def test_starts_that_waver_say_nothing_of_who_starts_later(later_s):
    old, new = (0.1, 1.0 + SLOW, SLOW), (0.1, 1.0 + later_s + FAST, FAST)
    run = started(old, new, wavers=(-0.5, 0.5, 0.4, -0.4))
    assert run.compare(NEW, OLD).verdict == "faster"
    assert why.starting(sides(), FACTS, run).sentences == ()


def test_a_batch_by_hand_counts_its_own_steps():
    (by_hand,) = sides(OLD, "batch 40", batch=40)[1:]
    assert why.facts_of(by_hand, {"batch 40": facts()}).batch == 40
    assert why.facts_of(sides()[0], FACTS) == facts()


OTHER = Place(python="other-env/bin/python")
HERE = Side(name="this environment", maker=make_training)
THERE = Side(name="other-env", maker=make_training, place=OTHER)
KNOWN = {
    Place(): Environment("3.11.7", {"tensorflow": "2.21.0", "numpy": "2.4.6"}),
    OTHER: Environment("3.12.1", {"tensorflow": "2.18.0", "numpy": "2.4.6", "x": "1"}),
}
HEAD = "2025-03-14 09:26:53.123456: I tensorflow/core/util/port.cc:153] "
ONEDNN = f"{HEAD}oneDNN custom operations are on."
CPU = f"{HEAD}This binary is optimized to use available CPU instructions: AVX2"


def environments(logs=None, names=(), of=(HERE, THERE), known=None):
    fold = why.environments(of, known or KNOWN, logs or {}, names)
    return {table.title.split()[0]: table for table in fold.tables}


def test_packages_that_differ_are_listed_and_no_others():
    table = environments()["Packages"]
    assert table.headings == ("package", "this environment", "other-env")
    assert rows(table) == {
        "Python": ["3.11.7", "3.12.1"],
        "tensorflow": ["2.21.0", "2.18.0"],
        "x": ["none", "1"],
    }


def test_what_tensorflow_says_in_one_environment_alone_is_listed():
    logs = {Place(): f"{ONEDNN}\n{CPU}", OTHER: CPU}
    assert environments(logs)["Said"].rows == (
        ("this environment", "oneDNN custom operations are on."),
    )
    assert environments({Place(): CPU, OTHER: CPU})["Said"].rows == ()


def test_neither_names_nor_paths_come_from_a_log():
    log = f"{HEAD}ada found /home/ada/cuda on Engine7.local\n{HEAD}it is on ENGINE7"
    said = environments({OTHER: log}, ("ada", "engine7"))["Said"].rows
    assert len(said) == 2
    assert not re.search(r"ada|engine7|/home", str(said), re.IGNORECASE)


def test_sides_of_one_place_have_no_environments_to_compare():
    assert environments(of=sides(), known={OTHER: KNOWN[OTHER]}) == {}
    table = environments(of=sides())["Packages"]
    assert table.rows == ()
