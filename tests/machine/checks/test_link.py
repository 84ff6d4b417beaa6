import pytest

from perfkit.machine.checks import card
from perfkit.machine.gpu import Link
from tests.machine.checks.computers import with_card, workstation


def judged(**link):
    best = {"generation_max": 4, "width_max": 16, "generation_card": 4}
    machine = with_card(workstation(), link=Link(**best | link))
    return list(card.narrow(machine))


def test_an_idle_link_is_unknown_and_never_a_fault():
    (found,) = judged(generation=1, width=16)
    assert (found.status, found.cost) == ("unknown", 0)
    assert "PCIe 1 ×16 (4 GB/s) now" in found.evidence
    assert "PCIe 4 ×16 (31.5 GB/s)" in found.evidence


def test_an_idle_link_that_has_not_slowed_down_is_fine():
    assert [check.status for check in judged(generation=4, width=16)] == ["ok"]


@pytest.mark.parametrize(
    ("generation", "width", "status"),
    [(4, 16, "ok"), (3, 16, "warn"), (4, 8, "warn"), (1, 16, "warn"), (5, 16, "ok")],
)
def test_under_load_the_link_is_held_against_card_and_slot(generation, width, status):
    (found,) = judged(
        generation=1, width=16, busy_generation=generation, busy_width=width
    )
    assert found.status == status


def test_missing_lanes_may_be_told_without_a_load():
    (found,) = judged(generation=1, width=8)
    assert found.status == "warn"
    assert "PCIe 4 ×8 (15.8 GB/s) now" in found.evidence


def test_a_slot_that_is_older_than_the_card_is_no_fault_and_is_told():
    (found,) = judged(generation_max=3, generation=3, width=16, busy_generation=3)
    assert found.status == "ok"
    assert "the card alone could do PCIe 4" in found.evidence


def test_half_the_speed_costs_half_as_much_as_none():
    (half,) = judged(generation=1, width=16, busy_generation=3, busy_width=16)
    (sixteenth,) = judged(generation=1, width=1, busy_generation=4, busy_width=1)
    assert half.cost == pytest.approx(0.5 * (1 - 0.985 / 1.97))
    assert sixteenth.cost == pytest.approx(0.5 * 15 / 16)


def test_nothing_is_said_where_the_driver_tells_nothing():
    assert list(card.narrow(with_card(workstation(), link=Link()))) == []


def test_an_instance_has_no_link_of_its_own():
    narrow = Link(generation=1, width=1, generation_max=5, width_max=16)
    machine = with_card(workstation(), link=narrow, state={"instance": True})
    assert list(card.narrow(machine)) == []


def test_a_link_that_nobody_looked_at_is_named_by_its_gpu():
    (found,) = judged(generation=1, width=16)
    assert "NVIDIA RTX A4000" in found.title
