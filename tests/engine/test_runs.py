"""Trials that are runs of their own, to their end, on a machine with its own clock."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from perfkit.engine.measurement import CONTROL, Variant
from perfkit.engine.steady import steady
from perfkit.engine.trial import RUN
from tests.engine.scripted import Script, play
from tests.findings.made import completed


def runs_for(seconds, **more):
    known = {"notes": ((RUN, True),), "ends": (1, "completed", ""), "examples": 1}
    return Script(seconds, **known | more)


def played(scripts, **plan):
    run, _ = play(scripts, **{"in_turns": False, "overrun": 1.0, "runs": 3} | plan)
    return list(run.events())[-1].measurement


def test_a_run_is_one_tick_and_its_seconds_are_the_rate():
    one = completed("x", 1, ((0.2, 0), (40.2, 1)), notes={RUN: True})
    assert steady(one).rate == pytest.approx(1 / 40)
    assert steady(replace(one, notes={})) is None
    assert (one.unit, replace(one, notes={}).unit) == ("runs", "examples")


def test_runs_come_one_after_the_other_and_their_ratio_is_that_of_their_seconds():
    # None of them hangs, though each is silent for minutes.
    found = played({"base": runs_for(400.0), "fast": runs_for(100.0)}, budget=3600)
    assert {trial.outcome for trial in found.trials} == {"completed"}
    assert not any(trial.turns for trial in found.trials)
    (compared,) = found.comparisons
    assert compared.ratio == pytest.approx(4.0, rel=0.01)
    assert compared.verdict == "faster"
    first = [trial.variant for trial in found.trials if trial.round == 1]
    assert sorted(first) == sorted(["base", "fast", CONTROL])
    assert first[-1] == CONTROL


def test_a_control_that_costs_a_round_is_left_out_of_the_next_ones():
    scripts = {"base": runs_for(10.0), "other": runs_for(10.0)}
    slows = SimpleNamespace(slowdown=lambda now: 1.0 if now < 31 else 1.2)
    found = played(scripts, budget=95, weather=slows)
    assert len(found.trials_of(CONTROL)) == 2
    assert found.comparisons[0].rounds == 3


@pytest.mark.parametrize(("budget", "with_control"), [(75, False), (100, True)])
def test_the_control_is_left_out_where_three_rounds_leave_it_no_room(
    budget, with_control
):
    scripts = {"base": runs_for(10.0), "other": runs_for(10.0)}
    found = played(scripts, budget=budget)
    assert bool(found.trials_of(CONTROL)) is with_control
    assert found.comparisons[0].rounds == 3
    assert {trial.outcome for trial in found.trials} == {"completed"}


def test_no_round_is_begun_that_does_not_fit():
    scripts = {"base": runs_for(10.0), "other": runs_for(10.0)}
    found = played(scripts, budget=55)
    assert [trial.outcome for trial in found.trials] == ["completed"] * 4
    # One that fails ends its round.
    broken = runs_for(1.0, ends=(0, "crashed", "raised"))
    found = played({"base": broken, "other": broken}, budget=60, choose=once(broken))
    assert [trial.outcome for trial in found.trials] == ["crashed"]


def test_a_run_that_does_not_end_is_cut_at_the_budget_and_the_others_are_kept():
    scripts = {"base": runs_for(10.0), "endless": runs_for(1e6)}
    ended = set()
    for seed in range(8):
        found = played(scripts, budget=60, seed=seed)
        ended |= {(trial.variant, trial.outcome) for trial in found.trials}
        assert found.trials[-1].started_s + found.trials[-1].wall_s < 61
    assert ended == {("base", "completed"), ("endless", "stopped")}


def once(script):
    """Choose one round of two variants."""

    def choose(measured):
        names = () if measured.trials else ("base", "other")
        return tuple(Variant(name, script) for name in names)

    return choose
