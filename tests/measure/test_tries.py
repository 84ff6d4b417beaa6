"""What is tried after the rounds, on a scripted machine with a clock of its own."""

import pytest

from perfkit.measure import plan
from perfkit.measure.measurement import CONTROL
from perfkit.measure.plan import Finished, Progress, TrialEnded, TrialStarted, Try
from tests.measure.scripted import Script, play

DONE = (3, "completed", "")
FULL = (3, "out-of-memory", "ran out of memory: 3 GB")


@pytest.fixture(autouse=True)
def _roomy(monkeypatch):
    monkeypatch.setattr("perfkit.measure.rounds.Run._room_for_another", lambda *_: True)


def asking(*wanted, answers=None):
    """Tries that ask for these one after another, and keep what came of each."""

    def ask(measured):
        for one in wanted:
            trial = yield one
            if answers is not None:
                answers.append((trial.variant, trial.outcome))

    return ask


def play_with(tried, *, budget=8, **more):
    return play({"base": Script(), "slow": Script(0.06)}, budget=budget, tries=tried)


def finished(run):
    return list(run.events())[-1].measurement


def test_each_try_is_answered_with_the_trial_that_came_of_it():
    answers = []
    ask = asking(
        Try(name="fits 8?", work=Script(ends=DONE)),
        Try(name="fits 16?", work=Script(ends=FULL)),
        answers=answers,
    )
    found = finished(play_with(ask)[0])
    assert answers == [("fits 8?", "completed"), ("fits 16?", "out-of-memory")]
    assert [t.variant for t in found.trials if t.is_try] == ["fits 8?", "fits 16?"]


def test_a_try_sees_what_the_rounds_have_shown():
    rates = []

    def ask(measured):
        rates.append(measured.timing("base").rate)
        yield from ()

    play_run, _ = play_with(ask)
    finished(play_run)
    assert rates == [pytest.approx(10 / 0.03, rel=0.01)]


def test_a_try_is_in_no_rate_and_no_comparison_even_under_a_variants_name():
    without = finished(play_with(None)[0])
    liar = Try(name="base", work=Script(0.5, ends=(30, "completed", "")))
    found = finished(play_with(asking(liar))[0])
    assert found.timings == without.timings
    assert found.comparisons == without.comparisons


def test_a_try_works_as_long_as_it_is_told_and_counts_as_completed():
    one = Try(name="learning", work=Script(0.1), seconds=3)
    found = finished(play_with(asking(one))[0])
    (trial,) = [t for t in found.trials if t.is_try]
    assert trial.outcome == "completed"
    assert sum(n > 0 for _, n in trial.ticks) == pytest.approx(30, abs=1)


def test_a_try_has_the_memory_that_it_is_given():
    limits = []
    run, starter = play_with(asking(Try(name="x", work=Script(ends=DONE), memory=10)))
    start = starter.start

    def noting(work, seed, given):
        limits.append(given.memory)
        return start(work, seed, given)

    starter.start = noting
    finished(run)
    assert limits[-1] == 10
    assert set(limits[:-1]) == {None}


def test_tries_have_time_of_their_own_and_end_with_it():
    def for_ever(_):
        while True:
            yield Try(name="again", work=Script(ends=(9, "completed", "")))

    for budget in (8, 100):
        run, _ = play_with(for_ever, budget=budget)
        events = list(run.events())
        ends = [e.spent for e in events if isinstance(e, Progress)]
        first = next(
            e.at for e in events if isinstance(e, TrialStarted) and e.variant == "again"
        )
        assert ends[-1] - first == pytest.approx(plan.seconds_for(budget), abs=1)
        assert isinstance(events[-1], Finished)


def test_progress_never_promises_less_than_what_is_to_come():
    ask = asking(*(Try(name="x", work=Script(ends=DONE)) for _ in range(3)))
    run, _ = play_with(ask, budget=8)
    told = [e for e in run.events() if isinstance(e, Progress)]
    assert all(e.expected >= e.spent for e in told)
    assert told[0].expected == pytest.approx(8 + plan.seconds_for(8))
    alone, _ = play_with(None, budget=8)
    told = [e for e in alone.events() if isinstance(e, Progress)]
    assert told[0].expected == pytest.approx(8)


def test_stop_in_the_middle_keeps_what_was_found():
    ask = asking(
        Try(name="fits 8?", work=Script(ends=DONE)),
        Try(name="fits 16?", work=Script(0.5)),
        Try(name="fits 32?", work=Script(ends=DONE)),
    )
    run, starter = play_with(ask)
    for event in run.events():
        if isinstance(event, TrialStarted) and event.variant == "fits 16?":
            run.stopped.set()
    assert event.stopped
    tried = {t.variant: t.outcome for t in event.measurement.trials if t.is_try}
    assert tried == {"fits 8?": "completed", "fits 16?": "stopped"}
    assert event.measurement.comparisons
    assert all(trial.outcome is not None for _, trial in starter.started)


def test_nothing_is_tried_after_a_stop():
    run, _ = play_with(asking(Try(name="x", work=Script(ends=DONE))))
    for event in run.events():
        if isinstance(event, TrialEnded):
            run.stopped.set()
    assert {t.variant for t in event.measurement.trials} <= {"base", "slow", CONTROL}


def test_a_try_that_hangs_is_timed_out_and_the_next_goes_on(monkeypatch):
    monkeypatch.setattr("perfkit.measure.rounds._TRY_SILENCE_S", 2.0)
    ask = asking(
        Try(name="mute", work=Script(hangs_after=2)),
        Try(name="next", work=Script(ends=DONE)),
    )
    found = finished(play_with(ask)[0])
    assert [t.outcome for t in found.trials if t.is_try] == ["timed-out", "completed"]
