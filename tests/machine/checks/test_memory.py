import pytest

from perfkit.machine.checks import cores
from tests.machine.checks.computers import GB, changed, workstation


@pytest.mark.parametrize(
    ("swap", "free", "status"),
    [(0, 50, "ok"), (20, 50, "ok"), (1, 2, "ok"), (20, 2, "warn")],
)
def test_swap_is_trouble_only_while_ram_is_short(swap, free, status):
    load = {"swap": swap * GB, "memory_free": free * GB}
    (found,) = cores.swapping(changed(workstation(), load=load))
    assert found.status == status
    assert f"{free} GB of 64 GB are free" in found.evidence


@pytest.mark.parametrize(
    ("granted", "free", "title"),
    [
        (64, 48, "There is memory to work with"),
        (64, 1, "Little memory is left"),
        (2, 1.9, "There is little memory"),
        (8, None, "There is memory to work with"),
    ],
)
def test_memory_is_short_where_little_is_granted_or_left(granted, free, title):
    machine = changed(
        workstation(),
        memory=granted * GB,
        load={"memory_free": None if free is None else free * GB},
    )
    (found,) = cores.ram(machine)
    assert found.title == title


def test_a_limit_below_what_is_there_is_told_with_both():
    machine = changed(workstation(), memory=2 * GB, software={"container": True})
    (found,) = cores.ram(machine)
    assert "2 GB of RAM may be used of 64 GB" in found.evidence
    assert "docker update --memory" in found.remedy


def test_a_machine_that_was_not_looked_at_is_judged_by_its_ram_alone():
    machine = changed(workstation(), load=None)
    assert list(cores.swapping(machine)) == []
    assert [check.status for check in cores.ram(machine)] == ["ok"]
