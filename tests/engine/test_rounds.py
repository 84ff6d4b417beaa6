"""Rounds, runs and tries on a scripted machine with a clock of its own."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from perfkit.engine import plan
from perfkit.engine import rounds as measure_rounds
from perfkit.engine.measurement import CONTROL, Variant
from perfkit.engine.plan import (
    Finished,
    Preparing,
    Progress,
    Ticked,
    TrialEnded,
    TrialStarted,
    Try,
)
from perfkit.engine.trial import REFUSED, RUN
from perfkit.errors import RunError
from tests.engine.scripted import Script, Weather, play


def measured(scripts, **plan):
    run, _ = play(scripts, **plan)
    return list(run.events())[-1].measurement


def last_progress(scripts, **plan):
    run, _ = play(scripts, **plan)
    return [e for e in run.events() if isinstance(e, Progress)][-1]


def test_a_known_difference_comes_out_with_its_size():
    found = measured({"base": Script(0.03), "slow": Script(0.045)}, budget=20)
    (comparison,) = [c for c in found.comparisons if c.variant == "slow"]
    assert comparison.verdict == "slower"
    assert comparison.ratio == pytest.approx(1 / 1.5, rel=0.01)
    assert found.timing("base").rate == pytest.approx(10 / 0.03, rel=0.01)
    scripts = {"base": Script(0.03), "slow": Script(0.045)}
    (doubted,) = measured(scripts, budget=20, least_rounds=99).comparisons
    assert doubted.verdict == "too noisy to say"
    # Ties are told from the fastest.
    scripts = {"base": Script(0.06), "a": Script(jitter=0.2), "b": Script(jitter=0.2)}
    assert {t.variant for t in measured(scripts, budget=30).fastest()} == {"a", "b"}


@pytest.mark.parametrize("in_turns", [True, False])
def test_stalls_that_are_longer_than_a_turn_count(in_turns):
    scripts = {"base": Script(0.025), "stalls": Script(0.025, stalls=(20, 0.4))}
    runs = [
        measured(scripts, budget=60, seed=seed, in_turns=in_turns) for seed in range(20)
    ]
    found = [run.compare("stalls", "base") for run in runs]
    truth = 0.025 / (0.025 + 0.4 / 20)
    assert np.median([one.ratio for one in found]) == pytest.approx(truth, rel=0.1)
    assert sum(one.low < truth < one.high for one in found) >= 18


def test_what_left_the_rounds_early_is_ranked_by_the_rounds_it_shared():
    times = {"base": 1.0, "early": 1.4, "longer": 1.5}
    scripts = {name: Script(0.03 / each, spread=0.01) for name, each in times.items()}
    # Once the early one has left, the whole machine slows.
    slows = SimpleNamespace(slowdown=lambda now: 1.0 if now < 18 else 2.0)
    found = measured(scripts, budget=60, weather=slows)
    trials = [t for t in found.trials if t.round <= 2 or t.variant != "early"]
    found = replace(found, trials=tuple(trials))
    assert max(trial.round for trial in found.trials) > 2
    assert found.timing("longer").rate < found.timing("early").rate
    assert found.fastest()[0].variant == "longer"


def test_every_variant_and_the_control_run_once_a_round_in_changing_order():
    found = measured({name: Script(jitter=0.3) for name in ("base", "a", "b", "c")})
    orders, seeds = {}, {}
    for trial in found.trials:
        orders.setdefault(trial.round, []).append(trial.variant)
        seeds.setdefault(trial.round, set()).add(trial.seed)
    every = sorted(["base", "a", "b", "c", CONTROL])
    assert sorted(orders[1]) == sorted(orders[2]) == every
    assert len({tuple(orders[number]) for number in (1, 2, 3)}) > 1
    # The trials of a round start from the same random numbers.
    assert all(len(of_round) == 1 for of_round in seeds.values())
    assert len(set.union(*seeds.values())) == len(seeds)
    # A plan may do without the control.
    found = measured({name: Script() for name in ("base", "a")}, twice=False)
    assert {trial.variant for trial in found.trials} == {"base", "a"}
    assert found.noise_floor is None


def test_fifteen_percent_are_found_where_all_wavers_and_a_copy_is_hardly_ever():
    times = {"base": 0.03, "copy": 0.03, "slow": 0.03 * 1.15}
    scripts = {n: Script(s, spread=0.02, jitter=0.1) for n, s in times.items()}
    verdicts = {"copy": [], "slow": []}
    for seed in range(24):
        found = measured(scripts, budget=60, seed=seed, weather=Weather(seed, 0.2))
        for name, seen in verdicts.items():
            seen.append(found.compare(name, "base"))
    assert sum(one.verdict == "slower" for one in verdicts["slow"]) >= 23
    assert sum(not one.is_noise for one in verdicts["copy"]) <= 1


@pytest.mark.parametrize("budget", [8, 20, 61])
def test_the_budget_is_kept(budget):
    scripts = {name: Script(spread=0.2, jitter=0.3) for name in ("base", "a", "b")}
    last = last_progress(scripts, budget=budget, weather=Weather(1, 0.3))
    assert last.spent <= budget * 1.1 + 1


def test_a_clear_answer_ends_the_run_early():
    last = last_progress({"base": Script(), "slow": Script(0.06)}, budget=600)
    assert last.spent < 60
    # A run may end once its answer is known and not before two rounds.
    scripts = {"base": Script(), "same": Script(jitter=0.4), "slow": Script(0.06)}
    whole = measured(scripts, budget=60)
    early = measured(scripts, budget=60, answered=lambda _: True)
    assert {t.round for t in early.trials} == {1, 2}
    assert len(early.trials) < len(whole.trials)
    # Later rounds hold only what is still unclear.
    scripts = {"base": Script(), "clear": Script(0.06), "wild": Script(spread=0.5)}
    found = measured(scripts, budget=60)
    rounds = {t.round for t in found.trials_of("wild")}
    assert {t.round for t in found.trials_of("clear")} < rounds
    assert {t.round for t in found.trials_of("base")} == rounds


def test_what_was_slow_to_be_ready_before_may_be_silent_for_longer():
    scripts = {"base": Script(set_up_s=75), "other": Script(set_up_s=75)}
    assert {t.outcome for t in measured(scripts, budget=600).trials} == {"timed-out"}
    found = measured(scripts, budget=600, ready_s=70.0)
    assert "timed-out" not in {t.outcome for t in found.trials}
    # What has shown no sign of life for several times as long hangs all the same.
    scripts["other"] = Script(set_up_s=400)
    found = measured(scripts, budget=600, ready_s=70.0)
    assert {t.outcome for t in found.trials_of("other")} == {"timed-out"}
    # As may one that comes after another which was slow.
    scripts = {"base": Script(set_up_s=50), "other": Script(set_up_s=75)}
    found = measured(scripts, budget=600)
    assert found.trials[0].variant == "base"
    assert {trial.outcome for trial in found.trials} == {"completed"}
    # An end of an epoch as long as that in the set-up is no hang.
    found = measured({"base": Script(set_up_s=20.0, stalls=(30, 40.0))}, budget=600)
    assert {trial.outcome for trial in found.trials} == {"completed"}


def test_a_variant_that_fails_is_an_outcome_and_the_rest_goes_on():
    scripts = {
        "base": Script(),
        "hungry": Script(ends=(3, "out-of-memory", "ran out of memory")),
        "broken": Script(ends=(0, "crashed", "raised ValueError: no")),
        "mute": Script(hangs_after=4),
    }
    found = measured(scripts, budget=60)
    assert {t.outcome for t in found.trials_of("hungry")} == {"out-of-memory"}
    assert {t.outcome for t in found.trials_of("broken")} == {"crashed"}
    assert [t.outcome for t in found.trials_of("mute")] == ["timed-out"]
    assert len(found.trials_of("broken")) == 2, "a crash may be bad luck, two are not"
    assert found.timing("base") is not None
    assert found.timing("hungry") is None
    assert found.comparisons == ()
    # The baseline failing leaves timings and no comparison.
    scripts = {"base": Script(ends=(0, "crashed", "raised")), "other": Script()}
    found = measured(scripts, budget=20)
    assert found.comparisons == ()
    assert found.noise_floor is None
    assert found.timing("other").rate == pytest.approx(10 / 0.03, rel=0.02)
    # Failing twice it ends no round in the middle.
    for seed in range(8):
        found = measured(scripts, seed=seed, budget=20, in_turns=False)
        assert found.timing("other") is not None


def test_neither_warm_up_nor_the_turn_of_another_is_in_the_rate():
    slow_start = np.linspace(4, 1, 20)
    found = measured({"base": Script(), "lazy": Script(warm_up=slow_start)}, budget=30)
    assert found.compare("lazy", "base").ratio == pytest.approx(1, abs=0.02)
    # Steps longer than any warm up are still timed.
    found = measured({"base": Script(2.0), "slow": Script(4.0)}, budget=120)
    assert found.timing("base").rate == pytest.approx(10 / 2.0, rel=0.02)
    assert found.compare("slow", "base").ratio == pytest.approx(0.5, rel=0.02)
    found = measured({"base": Script(0.03), "slow": Script(0.2)}, budget=30)
    for trial in found.trials:
        times = np.array([t for t, _ in trial.ticks])
        spent = np.diff(times)[[n > 0 for _, n in trial.ticks[1:]]]
        tick_s = 0.2 if trial.variant == "slow" else 0.03
        assert spent == pytest.approx(np.full(len(spent), tick_s), rel=0.01)


def test_stop_ends_the_run_and_keeps_what_was_measured():
    run, starter = play({"base": Script(spread=0.3), "a": Script()}, budget=1000)
    turns = 0
    for event in run.events():
        turns += isinstance(event, TrialEnded)
        if turns == 4:
            run.stopped.set()
    assert isinstance(event, Finished)
    assert event.stopped
    kept = event.measurement.trials
    assert sum(t.outcome == "completed" for t in kept) >= 3
    assert all(trial.outcome is not None for _, trial in starter.started)
    # Closing the iterator leaves no trial running either.
    run, starter = play({"base": Script(), "a": Script()})
    events = run.events()
    for event in events:
        if isinstance(event, Ticked):
            break
    events.close()
    assert starter.started
    assert all(trial.outcome == "stopped" for _, trial in starter.started)


@pytest.mark.parametrize("long", [{"set_up_s": 20.0}, {"first_s": 6.0}])
def test_a_first_round_that_takes_long_has_turns_enough_to_be_judged(long):
    scripts = {"base": Script(0.05, **long), "slow": Script(0.15, **long)}
    found = measured({**scripts, "other": Script(0.05, **long)}, budget=60)
    assert found.compare("slow", "base").verdict == "slower"
    assert min(len(trial.turns) for trial in found.trials) > 1


def test_a_turn_of_each_is_kept_where_the_first_round_is_stopped():
    # However far apart they are, a turn of each claims nothing.
    run, _ = play({"base": Script(), "a": Script(), "b": Script(0.3)}, budget=1000)
    started, heard = [], set()
    for event in run.events():
        if isinstance(event, TrialStarted):
            started.append(event.variant)
        elif isinstance(event, Ticked) and len(started) == 4:
            # The last to start still warms up.
            heard |= {event.variant} if heard or event.variant != started[-1] else set()
            if len(heard) == len(started):
                run.stopped.set()
    kept = event.measurement
    assert {(t.outcome, len(t.turns)) for t in kept.trials} == {("completed", 1)}
    assert {one.variant for one in kept.timings} == {"base", "a", "b"}
    assert not any(one.is_judged for one in kept.comparisons)
    assert kept.compare("b", "base").ratio == pytest.approx(0.1, rel=0.1)


def test_what_prepare_notes_is_kept_and_its_time_is_not_in_the_budget():
    prepare = Script(set_up_s=500, ends=(1, "completed", ""), notes=[("images", 12)])
    run, _ = play({"base": Script()}, budget=10, prepare=prepare)
    events = list(run.events())
    assert events[-1].measurement.notes == {"images": 12}
    assert events[-1].measurement.timing("base") is not None
    assert any(isinstance(e, Preparing) for e in events)
    # What prepare refuses is shown and not timed.
    why = "It gives another answer."
    notes = [("numbers", 3), (REFUSED, {"twice": why})]
    prepare = Script(ends=(1, "completed", ""), notes=notes)
    scripts = {"base": Script(), "twice": Script(), "other": Script()}
    found = measured(scripts, prepare=prepare)
    assert {trial.variant for trial in found.trials} == {"base", "other", CONTROL}
    assert [one.unavailable for one in found.variants] == ["", why, ""]
    assert found.notes == {"numbers": 3}
    # What cannot run here is not started.
    gpu = Variant("gpu", Script(), against="base", unavailable="there is no GPU here")
    found = measured({"base": Script(), "gpu": gpu}, budget=5)
    assert {t.variant for t in found.trials} == {"base", CONTROL}
    # Prepare that fails is one sentence.
    prepare = Script(ends=(0, "crashed", "raised OSError: no space left"))
    with pytest.raises(RunError, match="no space left"):
        measured({"base": Script()}, prepare=prepare)


@pytest.mark.parametrize(
    ("base", "slow"),
    [
        (Script(), Script(0.06)),
        # A first call that takes long leaves time for a rate.
        (Script(first_s=5.0), Script(0.06, first_s=5.0)),
        # Ticks that take long still make one.
        (Script(2.0), Script(4.0)),
    ],
    ids=["quick", "long first call", "long ticks"],
)
def test_without_turns_each_trial_runs_in_one_go_within_the_budget(base, slow):
    found = measured({"base": base, "slow": slow}, in_turns=False, budget=60)
    assert all(t.turns == () for t in found.trials)
    assert found.compare("slow", "base").ratio == pytest.approx(0.5, rel=0.02)
    assert {t.outcome for t in found.trials} == {"completed"}
    assert max(t.wall_s for t in found.trials) < 15


@pytest.mark.parametrize(("free", "fits"), [(25e9, True), (1e9, False)])
def test_trials_take_turns_where_all_have_room(free, fits, monkeypatch):
    own = SimpleNamespace(rss=300 * 10**6, shared=0)
    process = SimpleNamespace(memory_info=lambda: own)
    monkeypatch.setattr(measure_rounds.psutil, "Process", lambda _: process)
    monkeypatch.setattr(measure_rounds, "free_bytes", lambda: free)
    scripts = {"base": Script(), "other": Script(), "slow": Script(0.06)}
    found = measured(scripts, budget=30)
    assert found.compare("slow", "base").verdict == "slower"
    assert any(t.turns for t in found.trials) is fits


@pytest.mark.fault("findings", "slow disk", sees="No rate counts the slow write.")
def test_who_takes_long_to_keep_what_was_measured_changes_no_rate():
    run, starter = play({"base": Script(), "slow": Script(0.06)}, budget=600)
    for event in run.events():
        if isinstance(event, TrialEnded):
            starter._clock.forward(20.0)
    assert run.measurement.timing("base").rate == pytest.approx(10 / 0.03, rel=0.01)
    assert run.measurement.timing("slow").rate == pytest.approx(10 / 0.06, rel=0.01)


# Trials that are runs of their own, to their end.


def runs_for(seconds, **more):
    known = {"notes": ((RUN, True),), "ends": (1, "completed", ""), "examples": 1}
    return Script(seconds, **known | more)


def played(scripts, **plan):
    return measured(scripts, **{"in_turns": False, "overrun": 1.0, "runs": 3} | plan)


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
    found = played({"base": runs_for(10.0), "other": runs_for(10.0)}, budget=55)
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


@pytest.mark.parametrize("least", [2, 3])
def test_a_budget_holds_as_many_rounds_as_a_claim_needs(least):
    scripts = {name: Script(set_up_s=2.0) for name in ("base", "other")}
    chosen = tuple(Variant(n, work, against="base") for n, work in scripts.items())
    limits = {"budget": 30, "least_rounds": least}
    found = measured(scripts, choose=lambda measured: chosen, **limits)
    assert found.compare("other", "base").rounds == least


# What is tried after the rounds.


DONE = (3, "completed", "")
FULL = (3, "out-of-memory", "ran out of memory: 3 GB")


def a_try(name="x", ends=DONE, **more):
    return Try(name=name, work=Script(ends=ends), **more)


def asking(*wanted, answers=None):
    """Tries that ask for these one after another, and keep what came of each."""

    def ask(measured):
        for wish in wanted:
            trial = yield wish
            if answers is not None:
                answers.append((trial.variant, trial.outcome))

    return ask


def play_with(tried, *, budget=8):
    return play({"base": Script(), "slow": Script(0.06)}, budget=budget, tries=tried)


def finished(tried):
    return measured({"base": Script(), "slow": Script(0.06)}, budget=8, tries=tried)


def tries_of(measured):
    return {t.variant: t for t in measured.trials if t.is_try}


def test_each_try_is_answered_with_the_trial_that_came_of_it():
    answers = []
    found = finished(asking(a_try("fits 8?"), a_try("fits 16?", FULL), answers=answers))
    assert answers == [("fits 8?", "completed"), ("fits 16?", "out-of-memory")]
    assert list(tries_of(found)) == ["fits 8?", "fits 16?"]


def test_a_try_is_in_no_rate_and_no_comparison_even_under_a_variants_name():
    without = finished(None)
    liar = Try(name="base", work=Script(0.5, ends=(30, "completed", "")))
    found = finished(asking(liar))
    assert found.timings == without.timings
    assert found.comparisons == without.comparisons
    # It works as long as it is told, and counts as completed.
    found = finished(asking(Try(name="learning", work=Script(0.1), seconds=3)))
    (trial,) = tries_of(found).values()
    assert trial.outcome == "completed"
    assert sum(n > 0 for _, n in trial.ticks) == pytest.approx(30, abs=1)


@pytest.mark.parametrize("budget", [8, 100])
def test_tries_have_time_of_their_own_and_end_with_it(budget):
    def for_ever(_):
        while True:
            yield a_try("again", (9, "completed", ""))

    run, _ = play_with(for_ever, budget=budget)
    events = list(run.events())
    told = [e for e in events if isinstance(e, Progress)]
    started = (e for e in events if isinstance(e, TrialStarted))
    first = next(e.at for e in started if e.variant == "again")
    own = plan.seconds_for(budget)
    assert told[-1].spent - first == pytest.approx(own, abs=1)
    assert told[0].expected == pytest.approx(budget + own)
    assert all(e.expected >= e.spent for e in told)
    assert isinstance(events[-1], Finished)


def test_stop_in_the_middle_keeps_what_was_found():
    endless = Try(name="fits 16?", work=Script(0.5))
    run, starter = play_with(asking(a_try("fits 8?"), endless, a_try("fits 32?")))
    for event in run.events():
        if isinstance(event, TrialStarted) and event.variant == "fits 16?":
            run.stopped.set()
    assert event.stopped
    tried = {name: t.outcome for name, t in tries_of(event.measurement).items()}
    assert tried == {"fits 8?": "completed", "fits 16?": "stopped"}
    assert event.measurement.comparisons
    assert all(trial.outcome is not None for _, trial in starter.started)


def test_a_try_that_hangs_is_timed_out_and_the_next_goes_on(monkeypatch):
    monkeypatch.setattr("perfkit.engine.rounds._TRY_SILENCE_S", 2.0)
    mute = Try(name="mute", work=Script(hangs_after=2))
    tried = tries_of(finished(asking(mute, a_try("next"))))
    outcomes = {name: trial.outcome for name, trial in tried.items()}
    assert outcomes == {"mute": "timed-out", "next": "completed"}
