import pytest

from perfkit.machine.checks import card as sharing
from perfkit.machine.checks import checks
from perfkit.machine.gpu import Holder
from tests.machine.checks.computers import (
    GB,
    changed,
    desktop,
    with_card,
    workstation,
)


def statuses(rule, machine):
    return [check.status for check in rule(machine)]


def test_a_desktop_on_the_card_is_ordinary():
    machine = with_card(workstation(), holders=desktop(), busy=0.1)
    assert statuses(sharing.others, machine) == ["ok"]


@pytest.mark.parametrize(
    ("gigabytes", "status"), [(2, "ok"), (4, "warn"), (15, "fail")]
)
def test_what_others_hold_is_held_against_the_memory(gigabytes, status):
    held = (Holder(program="python", memory=gigabytes * GB),)
    (found,) = sharing.others(with_card(workstation(), holders=held))
    assert found.status == status
    assert "taken by python" in found.evidence


def test_what_this_process_holds_or_does_is_not_somebody_else():
    own = (Holder(program="python", memory=15 * GB, own=True),)
    machine = with_card(workstation(), holders=own, busy=0.9)
    assert statuses(sharing.others, machine) == ["ok"]


def test_somebody_who_computes_without_much_memory_is_seen():
    machine = with_card(workstation(), busy=0.7)
    assert statuses(sharing.others, machine) == ["warn"]


def test_where_the_driver_names_nobody_more_is_allowed_for():
    hidden = with_card(workstation(), holders=None, busy=None)
    little = with_card(hidden, memory_used=5 * GB)
    much = with_card(hidden, memory_used=9 * GB)
    unknown = with_card(hidden, memory_used=None)
    assert statuses(sharing.others, little) == ["ok"]
    assert statuses(sharing.others, much) == ["warn"]
    assert statuses(sharing.others, unknown) == []


def test_an_instance_is_told_from_a_divided_card():
    (part,) = sharing.instance(with_card(workstation(), state={"instance": True}))
    (whole,) = sharing.instance(with_card(workstation(), state={"mig": True}))
    assert part.title == "This is a part of a GPU"
    assert whole.title == "The GPU is divided into parts"
    assert list(sharing.instance(workstation())) == []


def test_the_compute_mode_decides_who_may_compute():
    def in_mode(mode, **facts):
        machine = with_card(workstation(), state={"compute_mode": mode}, **facts)
        return [(check.id, check.status) for check in sharing.mode(machine)]

    taken = (Holder(program="python", memory=GB),)
    assert in_mode("default") == in_mode(None) == []
    assert in_mode("prohibited") == [("no-computing", "fail")]
    assert in_mode("exclusive process") == [("exclusive-gpu", "warn")]
    assert in_mode("exclusive process", holders=taken) == [("exclusive-gpu", "fail")]
    assert in_mode("exclusive process", holders=desktop()) == [
        ("exclusive-gpu", "warn")
    ]


def test_a_card_for_one_program_that_somebody_has_is_one_fault(described):
    driver, cards, _ = described["exclusive"]
    machine = workstation(*cards, driver=driver)
    fails = [check.id for check in checks(machine) if check.status == "fail"]
    assert fails == ["exclusive-gpu"]


def test_settings_of_the_card_are_changed_where_its_driver_is():
    machine = with_card(workstation(), state={"compute_mode": "prohibited"})
    (native,) = sharing.mode(machine)
    (inside,) = sharing.mode(changed(machine, software={"container": True}))
    (windows,) = sharing.mode(changed(machine, software={"platform": "wsl2"}))
    assert native.remedy == "sudo nvidia-smi -i 0 -c DEFAULT"
    assert inside.remedy.startswith("On the host: sudo")
    assert windows.remedy.startswith("In Windows, in a PowerShell as administrator")
