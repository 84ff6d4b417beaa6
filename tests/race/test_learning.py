"""The time to a loss, of races whose losses are known."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import perfkit
from perfkit.errors import BadParameterError
from perfkit.measure.trial import LOSSES
from perfkit.race.learning import examples_to
from tests.findings.made import finding as any_finding
from tests.findings.made import of_run
from tests.race.built import NEW, OLD, measured, race, sides

GOAL = 1.0


def falling(needed, start=1.0):
    """Means of a loss that falls as 1/root of the examples, at 1 after ``needed``."""
    ends = [32.0 * 1.3**n for n in range(31)]
    # The mean of that curve between two places, by its integral.
    roots = [2 * math.sqrt(needed * end) for end in [0.0, *ends]]
    means = (np.diff(roots) / np.diff([0.0, *ends])).tolist()
    return [(ends[0], start * means[0]), *zip(ends[1:], means[1:], strict=True)]


def raced(needed, rates=None, rounds=5):
    """A race; of each side the examples that its trials need, by round."""
    run = measured(rates or dict.fromkeys(needed, 1000.0), rounds)
    told = {
        (name, number): {LOSSES: falling(one, 1 + number / 100)}
        for name, each in needed.items()
        for number, one in enumerate(each, 1)
    }
    trials = [
        replace(one, notes=told.get((one.variant, one.round), {})) for one in run.trials
    ]
    made = of_run(replace(run, trials=tuple(trials)), experiment="race")
    return replace(made, parameters=race(sides(*needed)).parameters)


def wavering(middle, by=0.1):
    return [middle * (1 + by * sign) for sign in (-1, 0, 1, -0.5, 0.5)]


@pytest.mark.parametrize("needed", [100.0, 777.0, 12_345.0])
def test_the_place_of_a_loss_is_read_off_between_means(needed):
    assert examples_to(GOAL, falling(needed)) == pytest.approx(needed, rel=0.1)


def test_a_loss_that_comes_back_was_not_reached_before():
    points = [(10, 2.0), (20, 0.9), (30, 1.5), (40, 0.9), (50, 0.8)]
    assert 25 < examples_to(GOAL, points) < 35
    assert examples_to(GOAL, points[:3]) is None
    assert examples_to(GOAL, []) is None
    assert examples_to(GOAL, [(10, 0.5), (20, 0.4)]) == 10
    assert examples_to(GOAL, [(10, 0.5), (20, math.nan)]) is None
    assert examples_to(GOAL, [(10, math.nan), (20, 0.5)]) == 15


def test_fewer_examples_and_faster_steps_are_held_together():
    asked = {OLD: wavering(3000.0), NEW: wavering(1000.0, by=0.05)}
    found = perfkit.time_to_loss(raced(asked, {OLD: 1000.0, NEW: 500.0}), GOAL)
    best = found.best
    assert best.verdict == "faster"
    assert best.ratio == pytest.approx(3 / 2, rel=0.05)
    assert best.low < 1.5 < best.high
    verdict = found.report.verdict
    assert verdict.headline == "To a loss of 1, new.py is 1.5 times as fast as old.py."
    assert re.fullmatch(r"It takes \S+ instead of \S+ s of training\.", verdict.much)
    assert (verdict.winner, verdict.sure) == (NEW, "sure")


def test_what_needs_more_is_slower_however_fast_its_steps():
    asked = {OLD: wavering(1000.0), NEW: wavering(9000.0)}
    found = perfkit.time_to_loss(raced(asked, {OLD: 1000.0, NEW: 3000.0}), GOAL)
    verdict = found.report.verdict
    assert verdict.headline == "To a loss of 1, new.py is 0.33 times as fast as old.py."
    assert verdict.winner == ""
    low, high = map(float, verdict.interval.split(" to "))
    assert 1 / 3.5 < low <= 1 / 3 <= high < 1 / 2.5


def test_seeds_that_differ_more_than_the_sides_leave_it_open():
    asked = {OLD: [500, 3000, 900, 4000, 700], NEW: [3000, 500, 4000, 700, 900]}
    verdict = perfkit.time_to_loss(raced(asked), GOAL).report.verdict
    assert verdict.sure == "not known yet"
    assert "not known yet" in verdict.headline
    assert (verdict.interval, verdict.winner, verdict.much) == ("", "", "")


@pytest.mark.parametrize("rounds", [1, 2])
def test_fewer_than_three_seeds_claim_nothing(rounds):
    asked = {OLD: wavering(3000.0)[:rounds], NEW: wavering(300.0)[:rounds]}
    found = perfkit.time_to_loss(raced(asked, rounds=rounds), GOAL)
    assert found.best is None
    assert found.report.verdict.sure == "not known yet"


def test_trials_of_one_seed_are_one():
    made = raced({OLD: [3000.0] * 5, NEW: [300.0] * 5})
    alike = [
        replace(one, notes={LOSSES: one.notes[LOSSES][1:]} if one.notes else {})
        for one in made.trials
    ]
    found = perfkit.time_to_loss(replace(made, trials=tuple(alike)), GOAL)
    assert found.best is None


def test_a_side_that_did_not_always_get_there_is_not_compared():
    asked = {OLD: wavering(300.0), NEW: [300.0, 300.0, 1e9, 300.0, 300.0]}
    found = perfkit.time_to_loss(raced(asked), GOAL)
    assert found.best is None
    assert "reached in 4 of 5 trials" in repr(found)


def test_the_best_of_several_is_named_and_any_may_be_the_one_held_against():
    names = {OLD: 3000.0, NEW: 1000.0, "third.py": 500.0}
    asked = {name: wavering(needed, by=0.02) for name, needed in names.items()}
    found = perfkit.time_to_loss(raced(asked), GOAL)
    assert found.report.verdict.winner == "third.py"
    assert len(found.report.table.rows) == 3
    found = perfkit.time_to_loss(raced(asked), GOAL, against=NEW)
    assert [row[0] for row in found.report.table.rows] == [NEW, OLD, "third.py"]
    assert found.best.baseline == NEW
    assert found.best.ratio == pytest.approx(2, rel=0.1)
    with pytest.raises(BadParameterError, match="no side of this race"):
        perfkit.time_to_loss(raced(asked), GOAL, against="fourth.py")


def test_a_guess_stands_in_the_report():
    asked = {OLD: wavering(3000.0), NEW: wavering(1000.0)}
    found = perfkit.time_to_loss(raced(asked), GOAL, guess="3x")
    assert "Your guess: 3x" in repr(found)


def test_it_says_where_it_was_measured_and_whether_it_was_run_here():
    made = raced({OLD: wavering(3000.0), NEW: wavering(1000.0)})
    found = perfkit.time_to_loss(made, GOAL)
    assert any("Measured on" in line for line in found.report.foot)
    assert found.report.stamp == ""
    shown = perfkit.time_to_loss(replace(made, replayed=True), GOAL)
    assert "not run here" in repr(shown)


@pytest.mark.parametrize("notes", [None, "x", [[1]], [["a", "b"]], {"a": 1}, [[-1, 2]]])
def test_a_file_may_say_anything_of_its_losses(notes):
    made = raced({OLD: wavering(300.0), NEW: wavering(3000.0)})
    spoiled = [replace(one, notes={LOSSES: notes}) for one in made.trials]
    found = perfkit.time_to_loss(replace(made, trials=tuple(spoiled)), GOAL)
    assert found.best is None
    assert repr(found)


def test_what_is_no_race_and_no_loss_is_refused():
    for found in any_finding(), None:
        with pytest.raises(BadParameterError, match=r"takes what perfkit\.race found"):
            perfkit.time_to_loss(found, GOAL)
    for loss in math.nan, "0.5":
        with pytest.raises(BadParameterError, match=r"give a number, such as 0\.5"):
            perfkit.time_to_loss(raced({OLD: [1.0], NEW: [1.0]}, rounds=1), loss)


def test_two_copies_are_seldom_told_apart():
    draw = np.random.default_rng(7)
    claims = 0
    for _ in range(100):
        asked = {
            name: list(1000 * np.exp(draw.normal(0, 0.2, 5))) for name in (OLD, NEW)
        }
        best = perfkit.time_to_loss(raced(asked), GOAL).best
        claims += best is not None and not best.is_noise
    assert claims <= 12
