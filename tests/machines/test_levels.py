import math
import random
from dataclasses import replace

import pytest

from perfkit.measure.measurement import CONTROL, Measurement, Variant
from perfkit.passports import levels
from perfkit.passports.levels import BETWEEN_RUNS, Levels, together
from tests.findings import made, parts

RATES = {"a": 1000.0, "b": 3000.0, "c": 10_000.0, "d": 500.0, CONTROL: 1000.0}


def measured(rates=RATES, *, rounds=2, noise=0.02, disturbed=()):
    """Trials of so many rounds; those that are disturbed go at a third of the speed."""
    draw = random.Random(1)
    trials = []
    for number in range(1, rounds + 1):
        for name, rate in rates.items():
            rate *= draw.gauss(1, noise) / (3 if (name, number) in disturbed else 1)
            trials.append(made.trial(name, rate, number, noise=noise))
    variants = tuple(Variant(name, iter) for name in rates)
    return Levels(Measurement(variants=variants, trials=tuple(trials), baseline="a"))


@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
def test_a_rate_and_a_ratio_lie_in_their_intervals(name):
    levels = measured()
    rate, ratio = levels.rate(name), levels.ratio(name, "a")
    assert rate.low < RATES[name] < rate.high
    assert rate.middle == pytest.approx(RATES[name], rel=0.08)
    assert ratio.low <= RATES[name] / RATES["a"] <= ratio.high
    assert rate.trials == 2
    # What has no completed trial has no level.
    assert levels.rate("e") is levels.ratio("e", "a") is None


def test_one_trial_of_four_that_was_disturbed_hardly_moves_a_rate():
    levels = measured(rounds=4, disturbed={("b", 2)})
    assert levels.rate("b").middle == pytest.approx(RATES["b"], rel=0.08)
    assert levels.rate("b").low < levels.rate("a").low * 3
    # Two runs differ by more than the trials of one.
    still = measured(rounds=8, noise=1e-6).rate("a")
    half = math.log(still.high / still.low) / 2
    assert half == pytest.approx(1.96 * BETWEEN_RUNS, rel=0.05)


def test_the_noise_floor_is_the_ratio_of_the_baseline_and_its_control():
    levels = measured(RATES | {CONTROL: 950.0}, noise=1e-4)
    assert levels.noise_floor == pytest.approx(1000 / 950, rel=0.05)
    assert measured({"a": 1.0, "b": 2.0}).noise_floor is None


def test_the_microbenchmarks_of_a_finding_are_taken_with_their_limits():
    found = {r.name: r for r in levels.benchmark_rates(parts.finding(), ())}
    assert list(found) == list(parts.RATES)
    product = found[parts.PRODUCT]
    assert product.unit == "FLOP"
    assert product.trials == 3
    assert product.low < product.rate < product.high
    assert product.share == pytest.approx(product.rate / 5e11)
    assert found["memory copy"].share is None


def test_a_microbenchmark_without_a_rate_says_why_without_names_and_paths():
    why = "cannot write /home/ada/x: it is full"
    failed = made.failed("memory copy", "crashed", why)
    finding = parts.finding(
        {parts.PRODUCT: parts.RATES[parts.PRODUCT]},
        notes={"microbenchmarks": parts.note()},
        unavailable={"Python loop": "ada may not"},
    )
    kept = ("notes", "timings", "unavailable", "baseline")
    finding = made.finding(
        **{name: getattr(finding, name) for name in kept},
        trials=(*finding.trials, failed),
    )
    found = {r.name: r.missing for r in levels.benchmark_rates(finding, ("ada",))}
    assert found[parts.PRODUCT] == ""
    assert found["memory copy"] == "It cannot write <path>: it is full."
    assert found["Python loop"] == "<name> may not."
    assert found["graph call"] == "The run ended before it."
    # A trial that was cut short did not fail.
    cut = made.failed("a", "stopped", "was at work when the run was stopped")
    assert levels.how_it_failed([cut]) == "The run ended before it."


def test_samples_are_thinned_to_means_with_the_time_of_the_last():
    columns = {"t": [1.0, 2.0, 3.0, 4.0, 5.0], "cpu": [1.0, 3.0, None, 5.0, None]}
    # States have no mean, and are left out.
    columns |= {"gpu0_throttle": [4.0] * 5, "gpu0_busy": [0.5] * 5}
    assert levels.thinned(columns, 3) == {
        "t": (2.0, 4.0, 5.0),
        "cpu": (2.0, 5.0, None),
        "gpu0_busy": (0.5, 0.5, 0.5),
    }


@pytest.mark.parametrize("count", [0, 1, 149, 150, 151, 1000])
def test_never_more_samples_are_kept_than_wanted(count):
    thin = levels.thinned({"t": [float(at) for at in range(count)]})
    assert len(thin["t"]) <= levels.SAMPLES
    assert not count or thin["t"][-1] == count - 1


def test_two_runs_come_onto_one_clock():
    first = {"t": (0.0, 1.0), "cpu": (1.0, 2.0)}
    second = {"t": (0.5,), "disk": (9.0,)}
    joined = levels.joined([(2.0, first), (10.0, second), (20.0, {})])
    assert joined == {
        "t": [2.0, 3.0, 10.5],
        "cpu": [1.0, 2.0, None],
        "disk": [None, None, 9.0],
    }
    # None begins before the last one has ended.
    joined = levels.joined([(2.0, {"t": (0.0, 1.0)}), (1.5, {"t": (0.0, 1.0)})])
    assert joined["t"] == [2.0, 3.0, 3.0, 4.0]


def test_the_speed_of_a_core_is_a_share_of_the_best_of_all_visits():
    def visit(best, *shares):
        found = parts.finding(rounds=1)
        samples = {"t": (0.0, 1.0), "core_speed": shares}
        notes = found.notes | {"best_core_speed": best} if best else found.notes
        return replace(found, samples=samples, notes=notes)

    visits = [(0.0, visit(100.0, 1.0, None)), (10.0, visit(70.0, 1.0, 0.5))]
    together = levels.joined(levels.on_one_scale(visits))
    assert together["core_speed"] == pytest.approx([1.0, None, 0.7, 0.35])
    # Of one that did not note it, nothing is known.
    untold = [(0.0, visit(None, 0.9, 1.0)), (10.0, visit(70.0, 1.0, 0.5))]
    assert levels.joined(levels.on_one_scale(untold))["core_speed"][0] == 0.9


def test_the_rounds_of_all_visits_are_those_of_one_run():
    visits = [(5.0, parts.finding(rounds=1)), (65.0, parts.finding(rounds=2))]
    found = together(visits)
    assert {trial.round for trial in found.trials} == {1, 2, 3}
    assert {timing.trials for timing in found.timings} == {3}
    assert found.trials[0].started_s == 5.0
    assert found.trials[-1].started_s == 65.0
    assert found.notes == visits[0][1].notes
    # What only one visit reached is kept.
    rates = dict(list(parts.RATES.items())[:2])
    visits = [(0.0, parts.finding(rounds=1)), (50.0, parts.finding(rates, rounds=1))]
    found = {timing.variant: timing.trials for timing in together(visits).timings}
    assert found["graph call"] == 1
    assert found["Python loop"] == 2


def test_samples_lie_on_the_passports_clock():
    samples = {"t": (0.0, 0.5), "cpu_other": (0.1, 0.2)}
    found = together([(at, made.finding(samples=samples)) for at in (10.0, 70.0)])
    assert found.samples["t"] == pytest.approx((10.0, 10.5, 70.0, 70.5))
    assert found.samples["cpu_other"] == (0.1, 0.2, 0.1, 0.2)
