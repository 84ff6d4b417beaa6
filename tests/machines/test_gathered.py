import pytest

from perfkit.passports import levels
from tests.findings import ladders, made


def test_the_rungs_of_a_ladder_are_taken_with_their_limits():
    found = {r.name: r for r in levels.rung_rates(ladders.finding(), ())}
    assert list(found) == list(ladders.RUNGS)
    product = found[ladders.PRODUCT]
    assert product.unit == "FLOP"
    assert product.trials == 3
    assert product.low < product.rate < product.high
    assert product.share == pytest.approx(product.rate / 5e11)
    assert found["memory copy"].share is None


def test_a_rung_without_a_rate_says_why_without_names_and_paths():
    failed = made.failed(
        "memory copy", "crashed", "cannot write /home/ada/x: it is full"
    )
    rungs = {k: v for k, v in ladders.RUNGS.items() if k == ladders.PRODUCT}
    finding = ladders.finding(
        rungs,
        notes={"rungs": ladders.note()},
        unavailable={"Python loop": "ada may not"},
    )
    finding = made.finding(
        **{
            name: getattr(finding, name)
            for name in ("notes", "timings", "unavailable", "baseline")
        },
        trials=(*finding.trials, failed),
    )
    found = {r.name: r.missing for r in levels.rung_rates(finding, ("ada",))}
    assert found[ladders.PRODUCT] == ""
    assert found["memory copy"] == "It cannot write <path>: it is full."
    assert found["Python loop"] == "<name> may not."
    assert found["graph call"] == "The run ended before it."


def test_a_trial_that_was_cut_short_did_not_fail():
    cut = made.failed("a", "stopped", "was at work when the run was stopped")
    assert levels.how_it_failed([cut]) == "The run ended before it."


def test_samples_are_thinned_to_means_with_the_time_of_the_last():
    columns = {"t": [1.0, 2.0, 3.0, 4.0, 5.0], "cpu": [1.0, 3.0, None, 5.0, None]}
    assert levels.thinned(columns, 3) == {
        "t": (2.0, 4.0, 5.0),
        "cpu": (2.0, 5.0, None),
    }


@pytest.mark.parametrize("count", [0, 1, 149, 150, 151, 1000])
def test_never_more_samples_are_kept_than_wanted(count):
    thin = levels.thinned({"t": [float(at) for at in range(count)]})
    assert len(thin["t"]) <= levels.SAMPLES
    assert not count or thin["t"][-1] == count - 1


def test_states_have_no_mean_and_are_left_out():
    columns = {"t": [1.0], "gpu0_throttle": [4.0], "gpu0_busy": [0.5]}
    assert set(levels.thinned(columns)) == {"t", "gpu0_busy"}


def test_two_runs_come_onto_one_clock():
    first = {"t": (0.0, 1.0), "cpu": (1.0, 2.0)}
    second = {"t": (0.5,), "disk": (9.0,)}
    joined = levels.joined([(2.0, first), (10.0, second), (20.0, {})])
    assert joined == {
        "t": [2.0, 3.0, 10.5],
        "cpu": [1.0, 2.0, None],
        "disk": [None, None, 9.0],
    }


def test_a_run_never_begins_before_the_last_one_has_ended():
    joined = levels.joined([(2.0, {"t": (0.0, 1.0)}), (1.5, {"t": (0.0, 1.0)})])
    assert joined["t"] == [2.0, 3.0, 3.0, 4.0]
