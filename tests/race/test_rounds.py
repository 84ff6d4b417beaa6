import pytest

from perfkit.measure.host import Environment, Place
from perfkit.measure.measurement import Measurement
from perfkit.measure.statistics import Comparison
from perfkit.race import rounds
from perfkit.race.rounds import Rounds, budget_for, ceilings, decided, without
from perfkit.race.sides import Side
from tests.diagnosis.measurements import in_rounds, stepping
from tests.findings.made import failed, trial
from tests.race.built import NEW, OLD, WAVERING, facts, make_training, measured, sides


def rounds_of(of=None, **options):
    of = of or sides()
    known = {side.name: facts() for side in of}
    return Rounds(of, known, **{"budget": 1000.0} | options)


def names(choose, run):
    return [one.name for one in choose(run)]


def why(*of):
    return [without(side, one) for side in of for one in ceilings(facts())]


def with_reasons(run, count, *of):
    """The same run, whose last rounds hold what explains a difference."""
    more = [
        trial(n, 2000.0, number) for number in range(1, count + 1) for n in why(*of)
    ]
    return Measurement(
        variants=run.variants, trials=(*run.trials, *more), baseline=run.baseline
    )


def test_the_ceilings_leave_out_input_observers_and_most_of_python():
    found = {
        one.cause for one in ceilings(facts(callbacks=("CSVLogger", "EarlyStopping")))
    }
    assert {"input-bound", "callback", "step-overhead"} <= found
    assert "small-batch" not in found


def test_the_first_rounds_hold_the_sides_alone_each_against_the_first():
    choose = rounds_of()
    assert [one.name for one in choose.first] == [OLD]
    nothing = Measurement(variants=choose.first, baseline=OLD)
    assert names(choose, nothing) == [OLD, NEW]
    for count in (1, 2):
        faster = measured({OLD: 1000.0, NEW: 3000.0}, rounds=count)
        assert names(choose, faster) == [OLD, NEW]
    first, *others = rounds_of(sides(OLD, NEW, "third.py"))(Measurement(variants=()))
    assert first.against == ""
    assert {one.against for one in others} == {OLD}
    assert [one.work.side.name for one in (first, *others)] == [OLD, NEW, "third.py"]


def test_an_open_answer_gets_more_rounds_and_sides_that_are_plainly_alike_none():
    assert names(rounds_of(), measured()) == []
    open_ = measured({OLD: 1000.0, NEW: WAVERING})
    assert names(rounds_of(), open_) == [OLD, NEW]


def test_a_plain_difference_is_explained_and_then_it_is_over():
    run, choose = measured({OLD: 1000.0, NEW: 2000.0}), rounds_of()
    assert names(choose, run) == [OLD, NEW, *why(OLD, NEW)]
    assert names(choose, with_reasons(run, 1, OLD, NEW)) == [OLD, NEW, *why(OLD, NEW)]
    assert names(choose, with_reasons(run, 2, OLD, NEW)) == []


def test_a_race_that_need_not_explain_is_over_once_its_answer_is_narrow():
    choose = rounds_of(explains=False)
    assert names(choose, measured({OLD: 1000.0, NEW: 2000.0})) == []
    wide = measured({OLD: 1000.0, NEW: 3 * (1800.0, 2200.0)})
    assert names(choose, wide) == [OLD, NEW]


def test_what_explains_a_side_is_held_against_that_side():
    variants = rounds_of()(measured({OLD: 1000.0, NEW: 2000.0}))
    assert {one.against for one in variants if one.name in why(OLD)} == {OLD}
    assert {one.against for one in variants if one.name in why(NEW)} == {NEW}
    assert all(
        len(one.work.changes) == 1 for one in variants if one.name in why(OLD, NEW)
    )


def test_a_wide_difference_is_explained_only_near_the_end_of_the_budget():
    rates = {OLD: 1000.0, NEW: (2000.0, 3000.0, 2000.0, 3000.0)}
    run = measured(rates, rounds=4)
    assert not run.compare(NEW, OLD).is_noise
    assert names(rounds_of(), run) == [OLD, NEW]
    # 40 s of them are spent.
    assert names(rounds_of(budget=60.0), run) == [OLD, NEW, *why(OLD, NEW)]


def test_of_three_the_fastest_is_explained():
    run = measured({OLD: 1000.0, NEW: 2000.0, "third.py": 1001.0})
    found = names(rounds_of(sides(OLD, NEW, "third.py")), run)
    assert found[:3] == [OLD, NEW, "third.py"]
    assert found[3:] == why(OLD, NEW)


def test_a_side_that_never_runs_ends_it_after_two_rounds():
    once = measured({OLD: 1000.0}, rounds=1, trials=[failed(NEW, "crashed", "no", 1)])
    assert names(rounds_of(), once) == [OLD, NEW]
    run = measured({OLD: 1000.0}, trials=[failed(NEW, "crashed", "raised", 3)])
    assert names(rounds_of(), run) == []


def test_a_check_is_over_once_it_is_decided():
    slower = measured({OLD: 1000.0, NEW: 500.0})
    assert names(rounds_of(worse=0.05), slower) == []
    assert names(rounds_of(worse=0.6), slower) == []
    assert names(rounds_of(worse=0.05), measured()) == []
    open_ = measured({OLD: 1000.0, NEW: WAVERING})
    assert names(rounds_of(worse=0.05), open_) == [OLD, NEW]
    # However plain, one or two rounds decide nothing.
    assert names(rounds_of(worse=0.05), measured({OLD: 1e3, NEW: 5e2}, 2)) == [OLD, NEW]


def compared(low, high, verdict="no difference shown"):
    return Comparison(
        variant=NEW,
        baseline=OLD,
        ratio=(low * high) ** 0.5,
        low=low,
        high=high,
        verdict=verdict,
        rounds=4,
    )


SLOWER = compared(0.5, 0.6, "slower")
SAME = compared(0.97, 1.03)
FASTER = compared(1.5, 1.6, "faster")
OPEN = compared(0.7, 1.4, "too noisy to say")


@pytest.mark.parametrize(
    ("comparisons", "answer"),
    [
        ([SLOWER], True),
        ([SAME], False),
        ([FASTER], False),
        ([OPEN], None),
        ([None], None),
        ([], None),
        ([SAME, SLOWER], True),
        ([OPEN, SLOWER], True),
        ([None, SLOWER], True),
        ([SAME, OPEN], None),
        ([SAME, None], None),
        ([SAME, FASTER], False),
        # Slower for sure, but by less than 5 %, or by who knows how much.
        ([compared(0.96, 0.98, "slower")], False),
        ([compared(0.94, 0.96, "slower")], None),
        # Beyond the interval's end, but not beyond the noise.
        ([compared(0.90, 0.94, "too noisy to say")], None),
        # At the very border it is not slower by more.
        ([compared(0.95, 0.99, "slower")], False),
        ([compared(0.90, 0.95, "slower")], None),
        ([compared(0.90, 0.9499, "slower")], True),
        ([compared(0.9499, 1.1)], None),
    ],
)
def test_what_is_decided_of_being_slower_by_5_percent(comparisons, answer):
    assert decided(comparisons, 0.05, 1.02) is answer


@pytest.mark.parametrize(
    ("ratio", "noise", "answer"),
    [
        (0.8, 1.05, True),
        (0.8, 1.06, True),
        (0.8, 1.11, True),
        (0.8, 1.12, None),
        (1.0, 1.05, False),
        (1.0, 1.06, None),
        (1.25, 1.11, False),
        (1.25, 1.12, None),
        (0.8, None, None),
    ],
)
def test_where_the_same_code_differs_only_twice_as_much_decides(ratio, noise, answer):
    verdict = "slower" if ratio < 1 else "no difference shown"
    told = compared(ratio / 1.01, ratio * 1.01, verdict)
    assert decided([told], 0.05, noise) is answer


def test_the_seconds_of_a_race_grow_with_its_trials_between_two_ends():
    def needed(ready_s, step_s, *names):
        of = sides(*names)
        known = {s.name: facts(ready_s=ready_s, step_s=step_s) for s in of}
        return budget_for(of, known)

    assert needed(0.1, 0.001) >= rounds._SHORTEST_S
    assert needed(900.0, 30.0) == rounds._LONGEST_S
    assert needed(5.0, 0.05) <= needed(10.0, 0.05) <= rounds._LONGEST_S
    assert needed(2.0, 0.01) <= needed(2.0, 0.01, OLD, NEW, "third.py")


# Why they differ.


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
    old, new = (rounds.parts(s, FACTS[s.name], run) for s in sides())
    assert old["input"].seconds == pytest.approx(0.006, rel=0.02)
    assert new["input"].seconds is None
    assert new["input"].high < 0.001
    for parts in (old, new):
        assert parts["dispatch"].seconds == pytest.approx(0.001, rel=0.05)
    (table,) = rounds.where(sides(), FACTS, run).tables
    assert table.headings == ("part of a step", OLD, NEW)
    before, after = rows(table)["waiting for input"]
    assert before.startswith("6 ms (")
    assert after.startswith("at most ")


def test_a_side_whose_parts_were_not_measured_has_no_column():
    run = measured({OLD: 1000.0, NEW: 2000.0})
    assert rounds.where(sides(), FACTS, run).tables[0].rows == ()
    alone = split_up(old={"": 0.010, INPUT: 0.004}, new={"": 0.005})
    (table,) = rounds.where(sides(), FACTS, alone).tables
    assert table.headings == ("part of a step", OLD)


OTHER = Place(python="other-env/bin/python")
HERE = Side(name="this environment", maker=make_training)
THERE = Side(name="other-env", maker=make_training, place=OTHER)
KNOWN = {
    Place(): Environment("3.11.7", {"tensorflow": "2.21.0", "numpy": "2.4.6"}),
    OTHER: Environment("3.12.1", {"tensorflow": "2.18.0", "numpy": "2.4.6", "x": "1"}),
}


def test_packages_that_differ_are_listed_and_no_others():
    (table,) = rounds.packages((HERE, THERE), KNOWN).tables
    assert table.headings == ("package", "this environment", "other-env")
    assert rows(table) == {
        "Python": ["3.11.7", "3.12.1"],
        "tensorflow": ["2.21.0", "2.18.0"],
        "x": ["none", "1"],
    }
    assert rounds.packages(sides(), {}).tables == ()
