import pytest

from perfkit.machine.checks import hardware as cores
from perfkit.machine.record import Busy, Disk, Load, Processor
from tests.machine.checks.computers import GB, by_rule, changed, says, workstation

WITH = workstation()
INSIDE = {"software": {"platform": "container"}}
TOP = (Busy(program="stress", cores=7.5), Busy(program="chrome", cores=1.25))


def granted(number, **facts):
    return changed(WITH, cores_granted=number, **facts)


def two(quota=None, affinity=None, **facts):
    return granted(2.0, cores_quota=quota, cores_affinity=affinity, **facts)


def governed(governor, driver):
    processor = {"governor": governor, "frequency_driver": driver}
    return changed(WITH, processor=processor)


def memory(gigabytes, free):
    load = {"memory_free": free}
    return changed(WITH, memory=gigabytes * GB, load=load, **INSIDE)


CASES = {
    cores.granted: [
        # The cores granted are held against those present.
        *[(granted(number), said, f"{number:g} of 24 cores") for number, said in (
            (24.0, "cores:ok"), (23.5, "cores:ok"), (12.0, "few-cores:warn"),
            (0.5, "few-cores:warn"))],
        # What grants few of them is told, and how to lift it.
        (two(quota=2.0), "few-cores:warn", "A quota grants the time of 2. | ",
         "A quota also", "CPUQuota", "~taskset"),
        (two(quota=2.0, **INSIDE), "few-cores:warn", "A quota grants", "A quota also",
         "docker update --cpus 24", "~cpuset"),
        (two(affinity=2), "few-cores:warn", "Its affinity names 2. | ",
         "taskset -cp 0-23", "~quota"),
        (two(affinity=2, **INSIDE), "few-cores:warn", "Its affinity",
         "--cpuset-cpus 0-23", "~quota"),
        (granted(1.5, cores_quota=1.5, cores_affinity=4), "few-cores:warn",
         "A quota grants the time of 1.5. Its affinity names 4. | ", "CPUQuota",
         "~taskset"),
    ],
    # Others cost what they take of the cores granted: a quota of 4 is still free while
    # others leave more than that.
    cores.busy: [
        (granted(number, load={"others": others, "top": TOP}), said,
         "busy: stress 7.5, chrome 1.2. | ")
        for number, others, said in (
            (24.0, 1.0, "load:ok"), (24.0, 6.0, "busy-cores:warn"),
            (4.0, 15.0, "load:ok"), (4.0, 23.0, "busy-cores:warn"))
    ],
    # "powersave" is the lowest frequency with some drivers; a battery comes first.
    cores.saving: [
        *[(governed(governor, driver), said) for governor, driver, said in (
            ("powersave", "intel_pstate", ""), ("powersave", "amd-pstate-epp", ""),
            ("powersave", "acpi-cpufreq", "saving-power:warn"),
            ("powersave", "intel_cpufreq", "saving-power:warn"),
            ("powersave", None, ""), ("performance", "acpi-cpufreq", ""))],
        (changed(WITH, processor={"preference": "power"}), "saving-power:warn",
         " | sudo cpupower frequency-set -g performance | "),
        (changed(WITH, load={"on_battery": False}), ""),
        (changed(WITH, load={"on_battery": True}, processor={"preference": "power"}),
         "battery:warn", " | This machine saves power | ", "charger"),
    ],
    # Memory is short where little is granted or left.
    cores.memory: [
        (memory(64, 48 * GB), "memory:ok", " | There is memory to work with | "),
        (memory(64, GB), "little-memory-left:warn", " | Little memory is left | "),
        (memory(2, 1.9 * GB), "little-memory:warn", " | There is little memory | ",
         "2 GB of RAM may be used of 64 GB", "docker update --memory"),
        (memory(8, None), "memory:ok", " | There is memory to work with | "),
    ],
    cores.windows_drive: [
        (changed(WITH, disk=Disk(windows=True, filesystem="9p")), "windows-drive:warn",
         " | The folder is on 9p. | "),
    ],
}  # fmt: skip

test_cores_memory_and_disk_are_judged_by_what_is_known_of_them = by_rule(CASES)


@pytest.mark.parametrize("processor", [None, Processor()])
@pytest.mark.parametrize("load", [None, Load()])
def test_what_was_not_looked_at_is_not_told(processor, load):
    machine = changed(WITH, processor=processor, load=load, disk=None)
    rules = (cores.busy, cores.saving, cores.windows_drive)
    assert [check for rule in rules for check in rule(machine)] == []
    # Memory is judged by what there is.
    says(cores.memory, machine, "memory:ok")
