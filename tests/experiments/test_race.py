"""What every race says, whatever races in it."""

import pytest

from perfkit.experiments.shared.race import QUIETER, Choice, Race
from perfkit.findings.record import Edit
from perfkit.measure.trial import Trial
from tests.experiments.races import measured

CHOICES = {name: Choice(f"Do {name}.", f"{name}()") for name in ("old", "new", "third")}


def verdict(rates, against="", said=None, **more):
    found = Race(measured(rates, **more), CHOICES, "images", "This work", against)
    return found.verdict(**said or {})


def test_a_winner_is_an_imperative_with_its_gain_its_doubt_and_its_code():
    said = {"warnings": ("It is large.",), "because": ("A fact.",), "next": "Go on."}
    found = verdict({"old": 100, "new": 200, "apart": 900}, said=said)
    assert (found.winner, found.headline) == ("new", "Do new.")
    assert found.much == (
        "This work then runs 2.0 times as fast: 200 instead of 100 images/s."
    )
    assert found.sure == "sure"
    assert found.interval.startswith(("1.9 to", "2 to"))
    assert found.edits == (Edit(old="old()", new="new()"),)
    assert {name: getattr(found, name) for name in said} == said


def test_it_may_be_held_against_another_than_the_run_has():
    found = verdict({"old": 100, "new": 200, "third": 400}, "new")
    assert found.edits == (Edit(old="new()", new="third()"),)
    assert "400 instead of 200 images/s" in found.much


def test_ties_are_said_as_ties():
    found = verdict({"old": 100, "new": 200, "third": 200.4})
    assert found.because[0] in ('"new" may be as fast.', '"third" may be as fast.')


@pytest.mark.parametrize("other", [50, 100.4, 99.6])
def test_a_baseline_that_nothing_beats_is_kept(other):
    found = verdict({"old": 100, "new": other})
    assert (found.winner, found.edits, found.sure) == ("", (), "sure")
    assert found.headline == 'Keep "old": nothing else is shown to be faster.'


@pytest.mark.parametrize(
    ("other", "noise", "rounds"), [(98, 0.3, 2), (115, 0.5, 3), (115, 0.5, 4)]
)
def test_noise_is_no_reason_to_keep_anything(other, noise, rounds):
    found = verdict({"old": 100, "new": other}, noise=noise, rounds=rounds)
    assert (found.winner, found.sure) == ("", "not known yet")
    assert found.headline == 'Whether anything is faster than "old" is not known yet.'
    assert found.next == QUIETER
    wild = verdict({"old": 100, "new": 115}, noise=3.0, rounds=2)
    assert "times as fast" not in wild.much


def test_what_was_never_held_against_the_baseline_does_not_keep_it():
    found = verdict({"new": 200, "third": 100}, "old")
    assert (found.winner, found.sure) == ("", "not known yet")
    assert found.much.endswith('; how that compares with "old" is not known yet.')


@pytest.mark.parametrize(
    ("rates", "said"), [({"old": 100, "apart": 9}, 'Only "old"'), ({"x": 9}, "Nothing")]
)
def test_where_no_two_were_timed_nothing_is_kept(rates, said):
    found = verdict(rates)
    assert (found.headline, found.sure) == (f"{said} could be timed.", "")
    assert found.next.startswith("Look at how the trials ended")


def test_what_failed_or_was_not_run_is_told_once():
    crash = Trial(variant="third", round=1, outcome="crashed", message="raised X: y")
    rates, refused = {"old": 100, "new": 200}, {"fourth": "needs a GPU"}
    found = verdict(rates, extra=(crash, crash), refused=refused)
    assert found.because == ('"third" raised X: y.', '"fourth" needs a GPU.')
