import pytest

from perfkit.passports.levels import together
from tests.findings import ladders, made


def test_the_rounds_of_all_visits_are_those_of_one_run():
    visits = [(5.0, ladders.finding(rounds=1)), (65.0, ladders.finding(rounds=2))]
    found = together(visits)
    assert {trial.round for trial in found.trials} == {1, 2, 3}
    assert {timing.trials for timing in found.timings} == {3}
    assert found.trials[0].started_s == 5.0
    assert found.trials[-1].started_s == 65.0
    assert found.notes == visits[0][1].notes


def test_samples_lie_on_the_passports_clock():
    samples = {"t": (0.0, 0.5), "cpu_other": (0.1, 0.2)}
    visits = [
        (10.0, made.finding(samples=samples)),
        (70.0, made.finding(samples=samples)),
    ]
    found = together(visits)
    assert found.samples["t"] == pytest.approx((10.0, 10.5, 70.0, 70.5))
    assert found.samples["cpu_other"] == (0.1, 0.2, 0.1, 0.2)


def test_what_only_one_visit_reached_is_kept():
    rates = {name: rung for name, rung in list(ladders.RUNGS.items())[:2]}
    visits = [
        (0.0, ladders.finding(rounds=1)),
        (50.0, ladders.finding(rates, rounds=1)),
    ]
    found = {timing.variant: timing.trials for timing in together(visits).timings}
    assert found["graph call"] == 1
    assert found["Python loop"] == 2
