"""What is worked out of runs on several devices, where every cost is known."""

import pytest

from perfkit.experiments.scaling import numbers
from perfkit.experiments.scaling.work import GPU, LOGICAL, traffic
from tests.experiments.scalings import (
    LINK_RATE,
    STEP,
    STRATEGY_S,
    SUM_S,
    WEIGHTS,
    linked,
    measured,
    note,
    steps,
)

WHOLE = STEP + STRATEGY_S + SUM_S


def test_efficiency_is_speed_up_by_the_number_of_devices():
    one, two, four = numbers.points(measured(steps()))
    assert (one.efficiency.value, one.speed_up) == (1.0, None)
    for point in (two, four):
        # Each device makes its share in WHOLE seconds, where one alone takes STEP.
        assert point.efficiency.value == pytest.approx(STEP / WHOLE, rel=0.02)
        assert point.speed_up.ratio == pytest.approx(
            point.count * STEP / WHOLE, rel=0.02
        )
        assert point.efficiency.low < point.efficiency.value < point.efficiency.high


def test_the_strategy_is_held_against_the_same_device_without_it():
    cost = numbers.strategy_cost(measured(steps()))
    assert cost.ratio == pytest.approx(STEP / (STEP + STRATEGY_S), rel=0.02)


def test_the_sum_is_what_a_step_takes_beyond_one_without_it():
    for one in numbers.sums(measured(linked(steps()))):
        assert one.step == pytest.approx(WHOLE, rel=0.02)
        assert one.seen.value == pytest.approx(SUM_S, rel=0.1)
        assert one.seen.low < SUM_S < one.seen.high


@pytest.mark.parametrize(("count", "sends"), [(2, 1.0), (4, 1.5)])
def test_a_ring_of_gpus_sends_almost_two_gradients_each(count, sends):
    (one,) = [s for s in numbers.sums(measured(linked(steps()))) if s.count == count]
    assert one.moved == sends * 4 * WEIGHTS
    assert one.predicted.value == pytest.approx(one.moved / LINK_RATE, rel=0.02)


def test_logical_devices_read_and_write_in_one_memory_what_all_of_them_send():
    assert traffic(10, LOGICAL, 3) == 3 * 2 * traffic(10, GPU, 3)
    assert traffic(10, GPU, 1) == 0


def test_without_a_link_nothing_is_predicted():
    assert all(one.predicted is None for one in numbers.sums(measured(steps())))
    assert numbers.link(measured(steps())) is None


def test_the_link_is_told_in_bytes():
    rate = numbers.link(measured(linked(steps())))
    assert rate.value == pytest.approx(LINK_RATE, rel=0.02)


def test_the_limit_turns_from_the_sum_to_the_input_as_devices_are_added():
    found = numbers.limits(measured(steps(feeding=0.003)))
    assert {count: what for count, (what, _) in found.items()} == {
        1: "neither",
        2: "sum",
        4: "input",
    }
    # What a fed step is longer by, of it.
    assert found[4][1] == pytest.approx(0.009 / (WHOLE + 0.009), rel=0.05)


def test_what_noise_hides_limits_nothing():
    found = numbers.limits(measured(steps(), noise=0.9))
    assert {what for what, _ in found.values()} == {"neither"}


@pytest.mark.parametrize(
    "told",
    [
        None,
        7,
        {"weights": "many", "batches": [], "link": -1},
        {"weights": True, "batches": {"2": "x"}, "link": 1e300, "joined": 3},
    ],
)
def test_whatever_a_file_holds_nothing_is_raised(told):
    run = measured(linked(steps()), notes={numbers.NOTE: told})
    assert len(numbers.points(run)) == 3
    assert numbers.sums(run) == ()
    assert numbers.link(run) is None
    assert numbers.joined(run) == ()


def test_without_one_device_there_is_nothing_to_hold_the_others_against():
    timed = steps()
    del timed["1 GPU"]
    assert numbers.points(measured(timed, notes=note())) == ()
