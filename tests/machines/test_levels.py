import math
import random

import pytest

from perfkit.measure.measurement import TWIN, Arm, Measurement
from perfkit.passports.levels import BETWEEN_RUNS, Levels
from tests.findings import made


def measured(rates, *, rounds=2, noise=0.02, disturbed=()):
    """Trials of so many rounds; those that are disturbed go at a third of the speed."""
    draw = random.Random(1)
    trials = [
        made.trial(
            name,
            rate * draw.gauss(1, noise) / (3 if (name, number) in disturbed else 1),
            number,
            noise=noise,
        )
        for number in range(1, rounds + 1)
        for name, rate in rates.items()
    ]
    arms = tuple(Arm(name, iter) for name in rates)
    return Levels(Measurement(arms=arms, trials=tuple(trials), baseline="a"))


RATES = {"a": 1000.0, "b": 3000.0, "c": 10_000.0, "d": 500.0, TWIN: 1000.0}


@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
def test_a_rate_and_a_ratio_lie_in_their_intervals(name):
    levels = measured(RATES)
    rate, ratio = levels.rate(name), levels.ratio(name, "a")
    assert rate.low < RATES[name] < rate.high
    assert rate.middle == pytest.approx(RATES[name], rel=0.08)
    assert ratio.low <= RATES[name] / RATES["a"] <= ratio.high
    assert rate.trials == 2


def test_one_trial_of_four_that_was_disturbed_hardly_moves_a_rate():
    levels = measured(RATES, rounds=4, disturbed={("b", 2)})
    assert levels.rate("b").middle == pytest.approx(RATES["b"], rel=0.08)
    assert levels.rate("b").low < levels.rate("a").low * 3


def test_two_runs_differ_by_more_than_the_trials_of_one():
    still = measured(RATES, rounds=8, noise=1e-6).rate("a")
    half = math.log(still.high / still.low) / 2
    assert half == pytest.approx(1.96 * BETWEEN_RUNS, rel=0.05)


def test_the_noise_floor_is_the_ratio_of_the_baseline_and_its_twin():
    levels = measured(RATES | {TWIN: 950.0}, noise=1e-4)
    assert levels.noise_floor == pytest.approx(1000 / 950, rel=0.05)
    assert measured({"a": 1.0, "b": 2.0}).noise_floor is None


def test_what_has_no_completed_trial_has_no_level():
    levels = measured(RATES)
    assert levels.rate("e") is None
    assert levels.ratio("e", "a") is None
