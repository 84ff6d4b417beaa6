"""What is tried after the rounds, on a scripted machine with a clock of its own."""

import pytest

from perfkit.engine import plan
from perfkit.engine.measurement import CONTROL
from perfkit.engine.plan import Finished, Progress, TrialEnded, TrialStarted, Try
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
    # A try sees what the rounds have shown.
    rates = []

    def ask(measured):
        rates.append(measured.timing("base").rate)
        yield from ()

    finished(ask)
    assert rates == [pytest.approx(10 / 0.03, rel=0.01)]


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


def test_a_try_has_the_memory_that_it_is_given(monkeypatch):
    limits = []
    run, starter = play_with(asking(one(memory=10)))
    start = starter.start

    def noting(work, seed, given):
        limits.append(given.memory)
        return start(work, seed, given)

    monkeypatch.setattr(starter, "start", noting)
    list(run.events())
    assert limits[-1] == 10
    assert set(limits[:-1]) == {None}


@pytest.mark.parametrize("budget", [8, 100])
def test_tries_have_time_of_their_own_and_end_with_it(budget):
    def for_ever(_):
        while True:
            yield one("again", (9, "completed", ""))

    run, _ = play_with(for_ever, budget=budget)
    events = list(run.events())
    ends = [e.spent for e in events if isinstance(e, Progress)]
    started = (e for e in events if isinstance(e, TrialStarted))
    first = next(e.at for e in started if e.variant == "again")
    assert ends[-1] - first == pytest.approx(plan.seconds_for(budget), abs=1)
    assert isinstance(events[-1], Finished)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"tries": asking(*[one()] * 3)}, 8 + plan.seconds_for(8)),
        ({"tries": None}, 8),
        # Who foresees the end has counted the tries.
        ({"tries": asking(one()), "usual": 9.0}, 9),
    ],
)
def test_progress_never_promises_less_than_what_is_to_come(more, expected):
    run, _ = play({"base": Script(), "slow": Script(0.06)}, budget=8, **more)
    told = [e for e in run.events() if isinstance(e, Progress)]
    assert all(e.expected >= e.spent for e in told)
    assert told[0].expected == pytest.approx(expected)


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
    # Nothing is tried after a stop.
    run, _ = play_with(asking(one()))
    for event in run.events():
        if isinstance(event, TrialEnded):
            run.stopped.set()
    assert {t.variant for t in event.measurement.trials} <= {"base", "slow", CONTROL}


def test_a_try_that_hangs_is_timed_out_and_the_next_goes_on(monkeypatch):
    monkeypatch.setattr("perfkit.engine.rounds._TRY_SILENCE_S", 2.0)
    mute = Try(name="mute", work=Script(hangs_after=2))
    tried = tries_of(finished(asking(mute, one("next"))))
    outcomes = {name: trial.outcome for name, trial in tried.items()}
    assert outcomes == {"mute": "timed-out", "next": "completed"}
