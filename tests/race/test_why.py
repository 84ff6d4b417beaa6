import pytest

from perfkit.measure.host import Environment, Place
from perfkit.race import why
from perfkit.race.rounds import ceilings, without
from perfkit.race.side import Side
from tests.diagnosis.measurements import in_rounds, stepping
from tests.race.built import NEW, OLD, facts, make_training, measured, sides

INPUT, MANY = "without input", "16 steps at a time"
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
    (table,) = why.where(sides(), FACTS, run).tables
    assert table.headings == ("part of a step", OLD, NEW)
    before, after = rows(table)["waiting for input"]
    assert before.startswith("6 ms (")
    assert after.startswith("at most ")


def test_a_side_whose_parts_were_not_measured_has_no_column():
    run = measured({OLD: 1000.0, NEW: 2000.0})
    assert why.where(sides(), FACTS, run).tables[0].rows == ()
    alone = split_up(old={"": 0.010, INPUT: 0.004}, new={"": 0.005})
    (table,) = why.where(sides(), FACTS, alone).tables
    assert table.headings == ("part of a step", OLD)


OTHER = Place(python="other-env/bin/python")
HERE = Side(name="this environment", maker=make_training)
THERE = Side(name="other-env", maker=make_training, place=OTHER)
KNOWN = {
    Place(): Environment("3.11.7", {"tensorflow": "2.21.0", "numpy": "2.4.6"}),
    OTHER: Environment("3.12.1", {"tensorflow": "2.18.0", "numpy": "2.4.6", "x": "1"}),
}


def test_packages_that_differ_are_listed_and_no_others():
    (table,) = why.packages((HERE, THERE), KNOWN).tables
    assert table.headings == ("package", "this environment", "other-env")
    assert rows(table) == {
        "Python": ["3.11.7", "3.12.1"],
        "tensorflow": ["2.21.0", "2.18.0"],
        "x": ["none", "1"],
    }


def test_sides_of_one_place_have_no_packages_to_compare():
    assert why.packages(sides(), {}).tables == ()
    (table,) = why.packages(sides(), KNOWN).tables
    assert table.rows == ()
