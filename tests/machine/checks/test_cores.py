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


@pytest.mark.parametrize(
    ("limit", "container", "said", "remedy"),
    [
        ({"cores_quota": 2.0}, False, "A quota grants the time of 2", "CPUQuota"),
        ({"cores_quota": 2.0}, True, "A quota", "docker update --cpus 24"),
        ({"cores_affinity": 2}, False, "Its affinity names 2", "taskset -cp 0-23"),
        ({"cores_affinity": 2}, True, "Its affinity", "--cpuset-cpus 0-23"),
    ],
)
def test_a_quota_of_whole_cores_is_told_from_an_affinity(
    limit, container, said, remedy
):
    software = {"container": container}
    machine = changed(workstation(), cores_granted=2.0, software=software, **limit)
    (found,) = cores.granted(machine)
    assert said in found.evidence
    assert remedy in found.remedy
    quota = "cores_quota" in limit
    assert [("quota" in word.lower()) for word in (found.evidence, found.why)] == (
        [quota] * 2
    )
    assert ("taskset" in found.remedy or "cpuset" in found.remedy) != quota


def test_both_limits_are_told_and_lifted():
    both = {"cores_quota": 1.5, "cores_affinity": 4}
    (found,) = cores.granted(changed(workstation(), cores_granted=1.5, **both))
    assert found.evidence.endswith(
        "A quota grants the time of 1.5. Its affinity names 4."
    )
    assert "CPUQuota" in found.remedy
    assert "taskset" in found.remedy


def test_an_older_record_does_not_say_what_grants_few_cores():
    (found,) = cores.granted(changed(workstation(), cores_granted=2.0))
    assert found.evidence == "This process may use 2 of 24 cores (AMD Ryzen 9 7900)."
    assert "quota" not in found.why
    assert "For a quota: systemctl" in found.remedy
    assert "For an affinity: taskset" in found.remedy


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
