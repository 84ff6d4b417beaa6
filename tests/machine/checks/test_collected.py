"""The whole path: files and a driver's script, the collectors, the checks."""

import pytest

from perfkit.machine.checks import checks
from perfkit.machine.load import observed
from tests.machine.checks.collected import FAULTY, HEALTHY
from tests.machine.checks.computers import workstation


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


@pytest.mark.parametrize(
    ("generation", "throttle", "rule"),
    [(4, 0x4, None), (3, 0x4, "slow-link"), (4, 0x20, "throttled")],
)
def test_what_was_seen_while_the_card_worked_decides(
    generation, throttle, rule, described
):
    driver, (card,), _ = described["idle_link"]
    samples = {
        "gpu0_busy": (0.0, 0.9, 0.9, 0.9, 0.9),
        "gpu0_link_generation": (1, *[generation] * 4),
        "gpu0_link_width": (16, *[16] * 4),
        "gpu0_throttle": (0x1, *[throttle] * 4),
    }
    machine = workstation(*observed((card,), samples), driver=driver)
    wrong = [check.id for check in checks(machine) if check.status != "ok"]
    assert wrong == ([rule] if rule else [])
