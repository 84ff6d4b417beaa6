import pytest

from perfkit.machine.checks import cores
from perfkit.machine.record import Processor
from tests.machine.checks.computers import changed, workstation


@pytest.mark.parametrize(
    ("governor", "driver", "status"),
    [
        ("powersave", "intel_pstate", "ok"),
        ("powersave", "amd-pstate-epp", "ok"),
        ("powersave", "acpi-cpufreq", "warn"),
        ("powersave", "intel_cpufreq", "warn"),
        ("powersave", None, "unknown"),
        ("performance", "acpi-cpufreq", "ok"),
        ("schedutil", None, "ok"),
    ],
)
def test_powersave_is_the_lowest_frequency_with_some_drivers(governor, driver, status):
    processor = {"governor": governor, "frequency_driver": driver}
    (found,) = cores.governor(changed(workstation(), processor=processor))
    assert found.status == status
    assert (found.cost > 0) == (status == "warn")


def test_a_frequency_below_what_the_cores_reach_is_told_in_gigahertz():
    processor = {"frequency_max": 4e9, "frequency_allowed": 2e9}
    (found,) = cores.limited(changed(workstation(), processor=processor))
    assert found.evidence == "2 GHz are allowed of 4 GHz."
    assert found.cost == pytest.approx(0.3)
    assert "-u 4000MHz" in found.remedy


def test_a_preference_for_power_is_told_and_a_balanced_one_is_not():
    saving = changed(workstation(), processor={"preference": "power"})
    (found,) = cores.saving(saving)
    assert found.remedy.startswith("echo performance | sudo tee /sys/")
    assert list(cores.saving(workstation())) == []


def test_only_a_laptop_has_a_word_about_its_battery():
    def told(on_battery):
        machine = changed(workstation(), load={"on_battery": on_battery})
        return [check.status for check in cores.battery(machine)]

    assert (told(None), told(False), told(True)) == ([], ["ok"], ["warn"])


def test_nothing_is_said_of_cores_that_tell_nothing():
    for processor in (None, Processor()):
        machine = changed(workstation(), processor=processor, load=None)
        assert [c for rule in cores.FREQUENCY for c in rule(machine)] == []
