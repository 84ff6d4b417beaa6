"""What every race says, whatever races in it."""

import statistics
from dataclasses import replace

import pytest

from perfkit import units
from perfkit.engine.plan import Progress
from perfkit.engine.statistics import Estimate
from perfkit.findings.record import Edit, Fact
from perfkit.questions.shared.verdicts import Choice, Race, fact
from tests.engine.scripted import Script, Weather, play
from tests.findings.made import failed
from tests.questions.races import measured, rounds_of, slips, trial

CHOICES = {name: Choice(f"Do {name}.", f"{name}()") for name in ("old", "new", "third")}


def verdict(rates, said=None, **more):
    found = Race(measured(rates, **more), CHOICES, "images", "This work")
    return found.verdict(**said or {})


def test_a_winner_is_an_imperative_with_its_gain_its_doubt_and_its_code():
    said = {"warnings": ("It is large.",), "because": ("A reason.",), "next": "Go on."}
    said["facts"] = (Fact("a rate", "5"),)
    found = verdict({"old": 100, "new": 200, "apart": 900}, said=said)
    assert (found.winner, found.headline) == ("new", "Do new.")
    assert found.much == (
        'This work then runs 2.0 times as fast as "old": 200 instead of 100 images/s.'
    )
    assert found.sure == "sure"
    assert found.interval.startswith(("1.9 to", "2 to"))
    assert found.edits == (Edit(old="old()", new="new()"),)
    assert {name: getattr(found, name) for name in said} == said


def test_what_is_too_noisy_to_say_hides_no_winner():
    rates = {"old": 100, "new": 180, "third": 200}
    wild = {1: 60, 2: 900, 3: 150, 4: 400}

    def make(name, number):
        rate = wild[number] if name == "third" else rates.get(name, 100)
        return replace(trial(name, rate), round=number)

    found = Race(rounds_of(make, rates), CHOICES, "images", "This work")
    assert max(found.measured.timings, key=lambda one: one.rate).variant == "third"
    said = found.verdict()
    assert (said.winner, said.headline) == ("new", "Do new.")
    assert '"third" may be as fast.' in said.because


def test_a_single_variant_wins_nothing_and_it_is_said_what_failed():
    assert verdict({"old": 100}).next.startswith("Give the run more seconds")
    crash = failed("third", "crashed", "raised X: y")
    run = measured({"old": 100, "new": 200, "third": 100})
    others = tuple(trial for trial in run.trials if trial.variant != "old")
    found = Race(replace(run, trials=others), CHOICES, "images").verdict()
    assert (found.winner, found.sure) == ("", "not known yet")
    assert found.much.endswith('; the run does not show whether "old" is slower.')
    assert verdict({"old": 100}, extra=(crash,)).next.startswith("Trials failed")
    # What may not be chosen is told all the same.
    apart = verdict({"old": 100, "apart": 50, "more": 70})
    assert apart.headline.startswith("apart against old: 0.50× (")
    assert apart.because[0].startswith("more against old: 0.70× (")
    assert (apart.winner, apart.sure, apart.next) == ("", "sure", "")
    lost = verdict({"old": 100, "apart": 50}, extra=(crash,))
    assert lost.headline == 'Only "old" could be timed.'


@pytest.mark.parametrize(
    ("low", "high", "row"),
    [(1, 3, ("2 s", "1 s to 3 s")), (2, 2, ("2 s", "")), (-1, 3, ("?", ""))],
    ids=["known", "exact", "not known"],
)
def test_a_number_is_a_row_with_its_interval(low, high, row):
    made = fact("a step", Estimate(value=2, low=low, high=high), units.seconds)
    assert (made.value, made.interval) == row


@pytest.mark.parametrize(
    ("rates", "noise", "clear"),
    [
        ({"old": 100, "new": 200}, 0.02, True),
        # Sure, and not yet sure to be worth it.
        ({"old": 100, "new": 109}, 0.002, False),
        ({"old": 100, "new": 125}, 0.3, False),
        ({"old": 100, "new": 60}, 0.02, False),
    ],
)
def test_a_run_may_end_where_the_gain_is_surely_worth_it(rates, noise, clear):
    assert Race(measured(rates, noise=noise), CHOICES, "images").is_clear == clear


def wins(truth, seed):
    """Whether "new" is said to win, and the seconds of a run that ends with that."""

    def race(found):
        return Race(found, CHOICES, "images")

    usual = {"spread": 0.08, "jitter": 0.2}
    scripts = {"old": Script(**usual), "new": Script(0.03 / truth, **usual)}
    more = {"baseline": "old", "budget": 60, "weather": Weather(seed, 0.4)}
    run, _ = play(scripts, seed=seed, answered=lambda m: race(m).is_clear, **more)
    events = list(run.events())
    *_, last = (event for event in events if isinstance(event, Progress))
    return race(events[-1].measurement).winner == "new", last.spent


def test_an_early_end_makes_nothing_up_and_saves_time(monkeypatch):
    monkeypatch.setattr("perfkit.engine.rounds.Run._room_for_another", lambda *_: True)
    faster = [wins(1.6, seed) for seed in range(8)]
    assert sum(wins(1.0, seed)[0] for seed in range(8)) <= 1
    assert sum(won for won, _ in faster) >= 7
    assert statistics.median(spent for _, spent in faster) < 30


@pytest.mark.parametrize("other", [50, 100.4, 99.6])
def test_a_baseline_that_nothing_beats_is_kept(other):
    found = verdict({"old": 100, "new": other})
    assert (found.winner, found.edits, found.sure) == ("", (), "sure")
    assert found.headline == 'Keep "old": nothing else is shown to be faster.'
    # One round is never sure of that, nor is a run that lost a choice.
    for less in ({"rounds": 1}, {"extra": (failed("third", "crashed", ""),)}):
        assert verdict({"old": 100, "new": 50}, **less).sure == "likely"


@pytest.mark.parametrize(
    ("other", "noise", "rounds"), [(98, 0.3, 2), (115, 0.5, 3), (115, 0.5, 4)]
)
def test_noise_is_no_reason_to_keep_anything(other, noise, rounds):
    found = verdict({"old": 100, "new": other}, noise=noise, rounds=rounds)
    assert (found.winner, found.sure, found.next) == ("", "not known yet", "")
    said = 'This run does not show whether anything is faster than "old".'
    assert found.headline == said


@pytest.mark.parametrize("noise", [0.5, 1.5, 3.0])
@pytest.mark.parametrize("new", [87.3, 118.7, 91_234])
@pytest.mark.parametrize("rounds", [2, 4])
def test_no_sentence_says_a_number_that_the_table_does_not(new, noise, rounds):
    found = measured({"old": 101.3, "new": new}, noise=noise, rounds=rounds)
    said = Race(found, CHOICES, "images").verdict()
    assert slips(found, said) == []
    assert ": ." not in said.much
