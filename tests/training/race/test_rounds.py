from dataclasses import replace

import pytest

from perfkit.engine.measurement import Measurement
from perfkit.engine.statistics import Comparison
from perfkit.training.race.question import ceilings, where, without
from perfkit.training.race.rounds import choose_variants, decided
from tests.findings.made import failed, trial
from tests.training.diagnose.measurements import in_rounds, stepping
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

THREE = sides(OLD, NEW, THIRD)
FASTER = {OLD: 1000.0, NEW: 2000.0}
SLOWER = {OLD: 1000.0, NEW: 500.0}
OPEN = {OLD: 1000.0, NEW: WAVERING}


def why(*of):
    return [without(side, one) for side in of for one in ceilings(facts())]


def explained(run, count):
    """The same run, whose last rounds hold what explains a difference."""
    more = [
        trial(name, 2000.0, number)
        for number in range(1, count + 1)
        for name in why(OLD, NEW)
    ]
    return replace(run, trials=(*run.trials, *more))


def failing(number):
    return [failed(NEW, "crashed", "raised", number)]


BOTH, ALL = [OLD, NEW], [OLD, NEW, *why(OLD, NEW)]
WIDE = measured({OLD: 1000.0, NEW: (2000.0, 3000.0, 2000.0, 3000.0)}, rounds=4)
CHECK, BRIEF = {"worse": 0.05}, {"explains": False}
# What has been measured, the names of the next round, and the race's options.
NEXT = {
    "nothing yet": (Measurement(variants=(), baseline=OLD), BOTH, {}),
    "two rounds": (measured(FASTER, rounds=2), BOTH, {}),
    "plainly alike": (measured(), [], {}),
    "open": (measured(OPEN), BOTH, {}),
    "a plain difference": (measured(FASTER), ALL, {}),
    "explained twice": (explained(measured(FASTER), 2), [], {}),
    "need not be explained": (measured(FASTER), [], BRIEF),
    # It is explained only near the end of the budget: 40 s are spent.
    "wide, and early": (WIDE, BOTH, {}),
    "wide, and late": (WIDE, ALL, {"budget": 60.0}),
    "a side never runs": (measured({OLD: 1000.0}, trials=failing(3)), [], {}),
    "slower by 5 %": (measured(SLOWER), [], CHECK),
    "slower, but not by 60 %": (measured(SLOWER), [], {"worse": 0.6}),
    "not slower": (measured(), [], CHECK),
    "open whether it is slower": (measured(OPEN), BOTH, CHECK),
    # However plain, one or two rounds decide nothing.
    "slower in two rounds": (measured(SLOWER, rounds=2), BOTH, CHECK),
}


@pytest.mark.parametrize(("run", "names", "options"), NEXT.values(), ids=NEXT)
def test_a_round_holds_what_is_still_open(run, names, options):
    chosen = choose_variants(race(), run, **{"budget": 1000.0} | options)
    assert [one.name for one in chosen] == names


def test_a_check_ends_once_a_side_is_seen_to_do_another_job():
    other = race(new={"batch": 20, "steps": 50})
    run = measured(OPEN, rounds=1)
    assert choose_variants(other, run, budget=60.0)
    assert choose_variants(other, run, budget=60.0, worse=0.05) == ()


def test_each_variant_is_held_against_its_side_and_of_three_two_are_explained():
    run = measured({OLD: 1000.0, NEW: 2000.0, THIRD: 1001.0})
    variants = choose_variants(race(THREE), run, budget=1000.0)
    names = [OLD, NEW, THIRD]
    assert [one.name for one in variants] == [*names, *why(OLD, NEW)]
    assert [one.work.side.name for one in variants[:3]] == names
    against = {one.name: one.against for one in variants}
    assert {against[name] for name in names} == {OLD}
    for side in (OLD, NEW):
        assert {against[name] for name in why(side)} == {side}
    assert {len(one.work.changes) for one in variants[3:]} == {1}


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


LESS = compared(0.5, 0.6, "slower")
SAME = compared(0.97, 1.03)
MORE = compared(1.5, 1.6, "faster")
NOISY = compared(0.7, 1.4, "too noisy to say")


@pytest.mark.parametrize(
    ("comparisons", "answer"),
    [
        ([LESS], True),
        ([SAME], False),
        ([MORE], False),
        ([NOISY], None),
        ([None], None),
        ([], None),
        ([SAME, LESS], True),
        ([NOISY, LESS], True),
        ([SAME, NOISY], None),
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
        *((0.8, noise, True) for noise in (1.05, 1.06, 1.11)),
        *((0.8, noise, None) for noise in (1.12, None)),
        *((1.0, 1.05, False), (1.0, 1.06, None)),
        *((1.25, 1.11, False), (1.25, 1.12, None)),
    ],
)
def test_where_the_same_code_differs_only_twice_as_much_decides(ratio, noise, answer):
    verdict = "slower" if ratio < 1 else "no difference shown"
    comparison = compared(ratio / 1.01, ratio * 1.01, verdict)
    assert decided([comparison], 0.05, noise) is answer


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
    (fold,) = where(sides(), FACTS, run)
    (table,) = fold.tables
    assert table.headings == ("part of a step", OLD, NEW)
    before, after = rows(table)["waiting for input"]
    assert before.startswith("6 ms (")
    assert after.startswith("at most ")
    for number, unit, *_ in map(str.split, rows(table)["dispatch overhead"]):
        ms = float(number) / (1000 if unit == "µs" else 1)
        assert ms == pytest.approx(1.0, rel=0.05)


def test_a_side_whose_parts_were_not_measured_has_no_column():
    assert where(sides(), FACTS, measured(FASTER)) == ()
    alone = split_up(old={"": 0.010, INPUT: 0.004}, new={"": 0.005})
    (fold,) = where(sides(), FACTS, alone)
    assert fold.tables[0].headings == ("part of a step", OLD)
