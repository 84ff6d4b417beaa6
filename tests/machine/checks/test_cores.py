import pytest

from perfkit.machine.checks import cores
from perfkit.machine.record import Busy, Load
from tests.machine.checks.computers import changed, workstation


@pytest.mark.parametrize(
    ("granted", "status"), [(24.0, "ok"), (23.5, "ok"), (12.0, "warn"), (0.5, "warn")]
)
def test_the_cores_granted_are_held_against_those_present(granted, status):
    (found,) = cores.granted(changed(workstation(), cores_granted=granted))
    assert found.status == status
    assert f"{granted:g} of 24 cores" in found.evidence


def test_the_remedy_for_few_cores_is_that_of_the_system():
    few = changed(workstation(), cores_granted=2.0)
    inside = changed(few, software={"container": True})
    assert "taskset" in next(cores.granted(few)).remedy
    assert "docker update --cpus 24" in next(cores.granted(inside)).remedy


def test_a_quota_is_blamed_only_where_it_is_the_cause():
    (whole,) = cores.granted(changed(workstation(), cores_granted=2.0))
    (part,) = cores.granted(changed(workstation(), cores_granted=1.5))
    assert "quota" not in whole.why
    assert "quota" in part.why
    assert "CPUQuota" in part.remedy


@pytest.mark.parametrize(
    ("granted", "others", "status"),
    [
        (24.0, 1.0, "ok"),
        (24.0, 6.0, "warn"),
        # A quota of 4 is still free while others leave more than that.
        (4.0, 15.0, "ok"),
        (4.0, 23.0, "warn"),
    ],
)
def test_others_cost_what_they_take_of_the_cores_granted(granted, others, status):
    machine = changed(
        workstation(), cores_granted=granted, load={"others": others, "top": ()}
    )
    (found,) = cores.busy(machine)
    assert found.status == status


def test_the_programs_that_take_most_are_named():
    top = (Busy(program="stress", cores=7.5), Busy(program="chrome", cores=1.25))
    machine = changed(workstation(), load={"others": 9.0, "top": top})
    (found,) = cores.busy(machine)
    assert found.evidence.endswith("busy: stress 7.5, chrome 1.2.")


def test_what_was_not_looked_at_is_not_told():
    blind = changed(workstation(), load=None)
    mute = changed(workstation(), load=Load())
    for machine in (blind, mute):
        assert list(cores.busy(machine)) == list(cores.stolen(machine)) == []


@pytest.mark.parametrize(("steal", "faults"), [(0.0, 0), (0.02, 0), (0.08, 1)])
def test_time_that_other_machines_took_is_told(steal, faults):
    found = list(cores.stolen(changed(workstation(), load={"steal": steal})))
    assert [check.id for check in found] == ["stolen-time"] * faults
