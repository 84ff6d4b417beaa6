"""Variants that take turns in one process are told apart, turn by turn."""

import pytest

from perfkit.measure.measurement import Arm, Measurement
from perfkit.measure.one_process import OneProcess, failed, turn
from perfkit.measure.steady import steady
from perfkit.measure.tick import READY

MS = 1_000_000


class Told:
    """What a process tells, on a clock of its own."""

    def __init__(self):
        self.now = 0
        self.heard = OneProcess(1, 0, zero_ns=0, clock=lambda: self.now)

    def tell(self, pause):
        self.heard.take(("ticks", [(self.now, 0, {}, pause.label)]))

    def turn(self, variant, number, rate, steps=5):
        """A turn in which each tick of ten examples lasts as the rate has it."""
        self.tell(turn(variant, number))
        self.now += 50 * MS
        self.tell(READY)
        for _ in range(steps):
            self.now += round(10 / rate * 1e9)
            self.heard.take(("ticks", [(self.now, 10, {}, "")]))


def told(rates, turns):
    found = Told()
    for number in turns:
        for variant, rate in rates.items():
            found.turn(variant, number, rate)
    return found


def test_each_variant_has_its_own_ticks():
    trials = {
        t.variant: t for t in told({"a": 100, "b": 400}, (1, 2, 3)).heard.trials()
    }
    assert steady(trials["a"]).rate == pytest.approx(100)
    assert steady(trials["b"]).rate == pytest.approx(400)
    assert {trial.round for trial in trials.values()} == {1}
    assert {trial.outcome for trial in trials.values()} == {"completed"}


def test_turns_of_one_number_are_held_side_by_side():
    found = told({"a": 100}, (1, 2))
    for number, rate in ((3, 50), (4, 80)):
        # The machine slows down, for both alike.
        found.turn("a", number, rate)
        found.turn("b", number, 2 * rate)
    arms = tuple(Arm(name, lambda: iter(()), "", "a") for name in ("a", "b"))
    trials = found.heard.trials()
    measured = Measurement(arms=arms, trials=trials, baseline="a")
    assert steady(trials[1]).keys == (3, 4)
    assert measured.compare("b", "a").ratio == pytest.approx(2, rel=0.05)


def test_what_comes_before_the_first_turn_warms_up():
    found = Told()
    found.turn("a", 0, 10)
    found.turn("a", 1, 100)
    found.turn("a", 2, 100)
    (trial,) = found.heard.trials()
    assert steady(trial).rate == pytest.approx(100)


def test_set_up_is_that_of_the_variants_own_first_turn():
    found = told({"a": 100, "b": 100}, (1,))
    assert [trial.setup_s for trial in found.heard.trials()] == [0.05, 0.05]


def test_a_variant_that_cannot_run_says_why_and_the_others_go_on():
    found = told({"a": 100, "b": 100}, (1,))
    told_why = failed("b", "raised ValueError: no")
    found.heard.take(("note", told_why.name, told_why.value))
    found.turn("a", 2, 100)
    outcomes = {t.variant: (t.outcome, t.message) for t in found.heard.trials()}
    assert outcomes["b"] == ("crashed", "raised ValueError: no")
    assert outcomes["a"][0] == "completed"
