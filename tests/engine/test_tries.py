"""What is tried after the rounds, on a scripted machine with a clock of its own."""

import pytest

from perfkit.engine import plan
from perfkit.engine.plan import Finished, Progress, TrialStarted, Try
from tests.engine.scripted import Script, play

DONE = (3, "completed", "")
FULL = (3, "out-of-memory", "ran out of memory: 3 GB")


def one(name="x", ends=DONE, **more):
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
    run, _ = play_with(tried)
    return list(run.events())[-1].measurement


def tries_of(measured):
    return {t.variant: t for t in measured.trials if t.is_try}


def test_each_try_is_answered_with_the_trial_that_came_of_it():
    answers = []
    found = finished(asking(one("fits 8?"), one("fits 16?", FULL), answers=answers))
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
            yield one("again", (9, "completed", ""))

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
    run, starter = play_with(asking(one("fits 8?"), endless, one("fits 32?")))
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
    tried = tries_of(finished(asking(mute, one("next"))))
    outcomes = {name: trial.outcome for name, trial in tried.items()}
    assert outcomes == {"mute": "timed-out", "next": "completed"}
