import pytest

from perfkit.experiments.scaling import numbers
from perfkit.experiments.scaling.work import GPU, LOGICAL, traffic
from tests.experiments import scalings
from tests.experiments.scalings import STEP, SUM_S, linked, measured, note, steps

WHOLE = STEP + scalings.STRATEGY_S + SUM_S


def test_efficiency_is_speed_up_over_one_device_by_their_number():
    one, two, four = numbers.points(measured(steps()))
    assert (one.efficiency.value, one.speed_up) == (1.0, None)
    for point in (two, four):
        # Each device makes its share in WHOLE seconds, where one alone takes STEP.
        assert point.efficiency.value == pytest.approx(STEP / WHOLE, rel=0.02)
        assert point.speed_up.ratio == pytest.approx(
            point.count * STEP / WHOLE, rel=0.02
        )
        assert point.efficiency.low < point.efficiency.value < point.efficiency.high
    timed = steps()
    del timed["1 GPU"]
    assert numbers.points(measured(timed, notes=note())) == ()


def test_what_a_strategy_and_the_sum_cost_is_what_a_step_is_longer_by():
    cost = numbers.strategy_cost(measured(steps()))
    assert cost.ratio == pytest.approx(STEP / (STEP + scalings.STRATEGY_S), rel=0.02)
    for one in numbers.sums(measured(linked(steps()))):
        assert one.step == pytest.approx(WHOLE, rel=0.02)
        assert one.seen.value == pytest.approx(SUM_S, rel=0.1)
        assert one.seen.low < SUM_S < one.seen.high


@pytest.mark.parametrize(("count", "sends"), [(2, 1.0), (4, 1.5)])
def test_a_ring_of_gpus_sends_almost_two_gradients_each(count, sends):
    (one,) = [s for s in numbers.sums(measured(linked(steps()))) if s.count == count]
    assert one.moved == sends * 4 * scalings.WEIGHTS
    takes = one.moved / scalings.LINK_RATE
    assert one.predicted.value == pytest.approx(takes, rel=0.02)


def test_logical_devices_read_and_write_in_one_memory_what_all_of_them_send():
    assert traffic(10, LOGICAL, 3) == 3 * 2 * traffic(10, GPU, 3)
    assert traffic(10, GPU, 1) == 0


def test_the_link_is_told_in_bytes_and_without_it_nothing_is_predicted():
    assert all(one.predicted is None for one in numbers.sums(measured(steps())))
    assert numbers.link(measured(steps())) is None
    rate = numbers.link(measured(linked(steps())))
    assert rate.value == pytest.approx(scalings.LINK_RATE, rel=0.02)


def test_the_limit_turns_from_the_sum_to_the_input_unless_noise_hides_it():
    found = numbers.limits(measured(steps(feeding=0.003)))
    limits = {count: what for count, (what, _) in found.items()}
    assert limits == {1: "neither", 2: "sum", 4: "input"}
    # What a fed step is longer by, of it.
    assert found[4][1] == pytest.approx(0.009 / (WHOLE + 0.009), rel=0.05)
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
