from dataclasses import replace

import pytest

from perfkit.findings.diagnosis import TOGETHER
from perfkit.training.diagnose import rounds
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.rounds import AS_GIVEN, Rounds, combined, unmeasured
from tests.findings.made import failed
from tests.training.diagnose.measurements import CEILING, MAP, XLA, change, measured

LOGGER = change("logger off", "callback")
GRAPH = change("graph", "eager")
ALL = (CEILING, MAP, LOGGER, GRAPH, XLA)


def work(changes):
    return lambda: iter(())


def chosen(found, changes=ALL, budget=120.0, ready_s=1.0, step_s=0.0, **options):
    facts = Facts(ready_s=ready_s, step_s=step_s)
    choosing = Rounds(changes, work, budget, facts, **options)
    return [one.name for one in choosing(found)]


def test_the_first_round_holds_all_that_waits_for_nothing():
    first = chosen(measured(rounds=0))
    assert first == [AS_GIVEN, "graph", "without input", "logger off", "XLA"]
    # What slows a training many times, and hides all else, is not left for later.
    traced = (LOGGER, XLA, change("fixed signature", "retracing"))
    assert chosen(measured(rounds=0), traced)[1] == "fixed signature"
    # Nor for the ceiling, where one change alone has room.
    eager = (CEILING, change("tf.function", "eager"))
    assert chosen(measured(rounds=0), eager, budget=26.0)[1:] == ["tf.function"]
    # In a small budget it holds fewer.
    assert len(chosen(measured(rounds=0), budget=26.0)) == 1 + 1
    # Where nothing took turns fresh processes look for themselves.
    assert chosen(measured(rounds=0), screened=True) == first


@pytest.mark.parametrize(("ready_s", "reserve_s"), [(10.0, 29.28), (20.0, 0.0)])
def test_a_setting_that_was_seen_gets_a_round_if_one_fits(ready_s, reserve_s):
    facts = Facts(ready_s=ready_s, step_s=0.01, settings={"debugging": ["a line"]})
    budget, turns_s, _ = rounds.planned(facts, 50.0, 90.0)
    assert budget - 50 - turns_s == pytest.approx(reserve_s)


def test_what_is_open_once_the_planned_time_is_over_is_measured_on():
    over = {"budget": 600.0, "screened": True, "usual_s": 5.0}
    sure = measured(rounds=2, logger_off=2.0)
    open_yet = measured(rounds=2, logger_off=(0.8, 2.4))
    assert LOGGER.name in chosen(open_yet, **over)
    assert chosen(open_yet, **over | {"budget": 5.0}) == []
    assert chosen(sure, **over) == []
    # What may be the largest of many by chance is open as well.
    by_gain = replace(LOGGER, kind="by gain")
    names = {f"another {number}": 1.0 for number in range(9)}
    many = measured(rounds=3, logger_off=(1.15, 1.25, 1.35), **names)
    assert chosen(many, (by_gain,), **over) == [AS_GIVEN, LOGGER.name]
    assert chosen(many, (LOGGER,), **over) == []
    # Within the time that was planned it goes on all the same.
    assert LOGGER.name in chosen(sure, **over | {"usual_s": 300.0})


def test_what_is_known_well_enough_or_never_ran_is_measured_no_more():
    found = measured(rounds=3, without_input=1.0, logger_off=1.5, graph=1.0, XLA=1.0)
    assert chosen(found) == []
    broken = failed(AS_GIVEN, "crashed", "ended with an error")
    assert chosen(measured(rounds=0, trials=[broken])) == []


def test_late_in_the_budget_the_best_of_each_cause_are_measured_together():
    gains = {"without_input": 1.0, "graph": 1.0, "XLA": 1.3}
    found = measured(rounds=3, logger_off=1.5, **gains)
    late = [replace(t, started_s=t.started_s + 60) for t in found.trials]
    choosing = Rounds(ALL, work, 120.0, Facts(ready_s=1.0))
    variants = [one.name for one in choosing(replace(found, trials=tuple(late)))]
    assert variants == [AS_GIVEN, TOGETHER]
    assert [one.name for one in choosing.together] == ["logger off", "XLA"]
    # What is not to be left out is not left out together with others.
    assert combined((replace(LOGGER, needed=True), XLA), found) == (XLA,)


@pytest.mark.parametrize(
    ("gains", "names"),
    [
        # Of a group it is enough that one of its changes explains it.
        ({"without_input": 3.0, "parallel_map": 2.5}, {"parallel map"}),
        ({"without_input": 3.0, "parallel_map": 1.0}, {"without input"}),
        # What brought nothing in turns is left at that.
        ({"without_input": 1.0, "logger_off": 1.5}, {"logger off"}),
        ({"without_input": 1.0, "logger_off": 0.5}, set()),
    ],
    ids=["explained", "unexplained", "helps", "slower"],
)
def test_after_turns_in_one_process_fresh_ones_hold_what_those_left_open(gains, names):
    found = measured(rounds=1, **{"logger_off": 1.0} | gains)
    held = set(chosen(found, (CEILING, MAP, LOGGER), screened=True))
    assert held & {"without input", "parallel map", "logger off"} == names


NOTHING = {"without_input": 1.0, "graph": 1.0}


@pytest.mark.parametrize(
    ("gains", "dead", "names"),
    [
        (NOTHING | {"without_input": 2.0}, (), ("parallel map", "logger off", "XLA")),
        # What waited for something that brings nothing is known.
        (NOTHING | {"logger_off": 1.0}, (), ("XLA",)),
        # And so is what waited for something that brings little at most.
        (NOTHING | {"without_input": 1.15, "logger_off": 1.0}, (), ("XLA",)),
        # An opportunity that cannot run is none; all else that cannot is open.
        (NOTHING | {"logger_off": 1.0}, ("XLA",), ()),
        (NOTHING | {"XLA": 1.0}, ("logger off",), ("logger off",)),
    ],
)
def test_what_no_round_holds_is_unmeasured(gains, dead, names):
    trials = [failed(name, "crashed", "ended with an error") for name in dead]
    assert unmeasured(ALL, measured(rounds=2, trials=trials, **gains)) == names


def test_what_waited_for_what_waited_is_known_with_the_group():
    inside = replace(MAP, name="inner map", after=MAP.name)
    known = measured(rounds=2, without_input=1.0)
    assert unmeasured((CEILING, MAP, inside), known) == ()
    open_yet = measured(rounds=2, without_input=2.0)
    assert unmeasured((CEILING, MAP, inside), open_yet) == (MAP.name, inside.name)


def test_a_round_holds_no_more_than_what_is_left_of_the_budget():
    found = measured(rounds=2, graph=1.2, logger_off=1.3, without_input=1.1, XLA=1.4)
    # Six trials of a round take so long together. There is room for four: the training
    # as given, its control, and two more.
    last = found.trials[-1]
    budget = last.started_s + last.wall_s + 4.1 * last.wall_s / 6
    holds = chosen(found, budget=budget, ready_s=-0.9)
    assert holds == [AS_GIVEN, "parallel map", TOGETHER]


def test_what_has_met_no_rate_of_the_training_as_given_is_tried_again():
    found = measured(rounds=1, graph=1.2, logger_off=1.3, without_input=1.0, XLA=1.1)
    short = [
        replace(t, ticks=t.ticks[:2]) if t.variant == AS_GIVEN else t
        for t in found.trials
    ]
    once = replace(found, trials=tuple(short))
    assert sorted(chosen(once)) == sorted(chosen(measured(rounds=0)))
    twice = replace(found, trials=(*short, *[replace(t, round=2) for t in short]))
    assert chosen(twice) == [AS_GIVEN, "without input"]
