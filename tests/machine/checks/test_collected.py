"""The whole path: files and a driver's script, the collectors, the checks."""

import pytest

from tests.machine.checks.collected import FAULTY, HEALTHY


@pytest.mark.parametrize("machine", HEALTHY, ids=lambda made: made.name)
def test_nothing_is_said_against_a_healthy_machine(machine, tmp_path, described):
    found = machine.read(tmp_path, described)
    assert [check for check in found if check.status in ("warn", "fail")] == []
    assert "ok" in {check.status for check in found}


@pytest.mark.parametrize("machine", FAULTY, ids=lambda made: made.name)
def test_what_was_planted_is_named_first_with_what_to_type(
    machine, tmp_path, described
):
    first, *_ = machine.read(tmp_path, described)
    assert first.id == machine.name
    assert machine.remedy in first.remedy
