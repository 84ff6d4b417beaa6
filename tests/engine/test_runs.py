"""Trials that are runs of their own, to their end, on a machine with its own clock."""

from types import SimpleNamespace

import pytest

from perfkit.engine.measurement import CONTROL, Variant
from perfkit.engine.trial import RUN
from tests.engine.scripted import Script, play


def runs_for(seconds, **more):
    known = {"notes": ((RUN, True),), "ends": (1, "completed", ""), "examples": 1}
    return Script(seconds, **known | more)


def played(scripts, **plan):
    run, _ = play(scripts, **{"in_turns": False, "overrun": 1.0, "runs": 3} | plan)
    return list(run.events())[-1].measurement


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


@pytest.mark.parametrize(
    ("budget", "slower", "controls"), [(75, 1.0, 0), (95, 1.2, 2), (100, 1.0, 2)]
)
def test_a_control_that_costs_a_round_is_left_out(budget, slower, controls):
    scripts = {"base": runs_for(10.0), "other": runs_for(10.0)}
    slows = SimpleNamespace(slowdown=lambda now: 1.0 if now < 31 else slower)
    found = played(scripts, budget=budget, weather=slows)
    assert len(found.trials_of(CONTROL)) == controls
    assert found.comparisons[0].rounds == 3


def test_no_round_is_begun_that_does_not_fit_and_one_that_fails_ends_its_round():
    scripts = {"base": runs_for(10.0), "other": runs_for(10.0)}
    found = played(scripts, budget=55)
    assert [trial.outcome for trial in found.trials] == ["completed"] * 4
    broken = runs_for(1.0, ends=(0, "crashed", "raised"))

    def once(measured):
        names = () if measured.trials else ("base", "other")
        return tuple(Variant(name, broken) for name in names)

    found = played({"base": broken, "other": broken}, budget=60, choose=once)
    assert [trial.outcome for trial in found.trials] == ["crashed"]


def test_a_run_that_does_not_end_is_cut_at_the_budget_and_the_others_are_kept():
    scripts = {"base": runs_for(10.0), "endless": runs_for(1e6)}
    ended = set()
    for seed in range(8):
        found = played(scripts, budget=60, seed=seed)
        ended |= {(trial.variant, trial.outcome) for trial in found.trials}
        assert found.trials[-1].started_s + found.trials[-1].wall_s < 61
    assert ended == {("base", "completed"), ("endless", "stopped")}
