import pytest

from perfkit.machine.checks import card as checks_card
from perfkit.machine.gpu import Clocks, throttle_reasons
from tests.machine.checks.computers import card, looked_at, with_card, workstation


def slowed(*reasons, busy=True):
    told = {"busy_throttle" if busy else "throttle": reasons}
    return with_card(workstation(card()), clocks=Clocks(**told))


# The driver's bits: heat, a brake and a slowdown are faults, limits by design are not.
@pytest.mark.parametrize(
    ("bit", "status"),
    [
        (0x1, "ok"),
        (0x4, "ok"),
        (0x8, "warn"),
        (0x20, "warn"),
        (0x40, "warn"),
        (0x80, "warn"),
        (0x200, "ok"),
        (0x400, "ok"),
        (0x100000, "unknown"),
    ],
)
def test_heat_and_a_weak_supply_are_faults_and_limits_by_design_are_not(bit, status):
    (found,) = checks_card.throttled(slowed(*throttle_reasons(bit)))
    assert found.status == status


def test_what_was_seen_under_load_counts_before_what_is_seen_now():
    cool = Clocks(throttle=("too hot, slowed by the hardware",), busy_throttle=())
    (found,) = checks_card.throttled(with_card(workstation(), clocks=cool))
    assert found.status == "ok"
    assert "under load: nothing" in found.evidence


def test_heat_now_is_told_where_nobody_looked_under_load():
    (found,) = checks_card.throttled(
        slowed("too warm, slowed by the driver", busy=False)
    )
    assert found.status == "warn"
    assert ", now: too warm" in found.evidence
    (idle,) = checks_card.throttled(slowed(busy=False))
    assert idle.title == "Nothing but its design slows the GPU now"


def test_nothing_is_said_where_the_driver_tells_nothing():
    machine = with_card(workstation(), clocks=Clocks(), power={"limit": None})
    assert list(checks_card.throttled(machine)) == []
    assert list(checks_card.power(machine)) == []


def test_a_power_brake_sends_the_reader_to_the_cables():
    (found,) = checks_card.throttled(slowed("power brake (external power supply)"))
    assert "power cables" in found.remedy


@pytest.mark.parametrize(
    ("limit", "status"), [(140, "ok"), (138, "ok"), (100, "warn"), (160, "ok")]
)
def test_a_limit_is_held_against_that_of_the_card(limit, status):
    machine = with_card(workstation(), power={"limit": limit, "limit_default": 140})
    (found,) = checks_card.power(machine)
    assert found.status == status
    assert f"limit {limit} W, its own 140 W" in found.evidence


def test_the_lower_a_limit_the_more_it_costs():
    low, lower = (
        next(checks_card.power(with_card(workstation(), power={"limit": watts})))
        for watts in (120, 60)
    )
    assert low.cost < lower.cost


def test_each_card_is_told_by_its_number():
    machine = workstation(looked_at(card()), looked_at(card(), throttle=("hot",)))
    well, hot = checks_card.throttled(machine)
    assert (well.status, hot.status) == ("ok", "warn")
    assert hot.evidence.startswith("GPU 1 (NVIDIA RTX A4000), under load: hot")
    assert "-i 1 " in hot.remedy


def test_reasons_that_hold_commas_are_told_apart():
    hot = ("too warm, slowed by the driver", "too hot, slowed by the hardware")
    (found,) = checks_card.throttled(slowed(*hot))
    assert f"{hot[0]}; {hot[1]}" in found.evidence
