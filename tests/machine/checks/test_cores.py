import pytest

from perfkit.machine.checks import cores
from perfkit.machine.record import Busy, Disk, Load, Processor
from tests.machine.checks.computers import GB, by_rule, changed, says, workstation

WITH = workstation()
INSIDE = {"software": {"container": True}}
TOP = (Busy(program="stress", cores=7.5), Busy(program="chrome", cores=1.25))
SLOWED = changed(WITH, processor={"frequency_max": 4e9, "frequency_allowed": 2e9})
MUCH = {"cold": 3e9, "cached": 9e9, "filesystem": "ext4"}


def granted(number, **facts):
    return changed(WITH, cores_granted=number, **facts)


def two(quota=None, affinity=None, **facts):
    return granted(2.0, cores_quota=quota, cores_affinity=affinity, **facts)


def governed(governor, driver):
    processor = {"governor": governor, "frequency_driver": driver}
    return changed(WITH, processor=processor)


def swapped(swap, free):
    return changed(WITH, load={"swap": swap * GB, "memory_free": free * GB})


def memory(gigabytes, free):
    load = {"memory_free": free}
    return changed(WITH, memory=gigabytes * GB, load=load, **INSIDE)


def disk(**facts):
    return changed(WITH, disk=Disk(**facts))


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
         "taskset"),
        # An older record does not say what grants few cores.
        (two(), "few-cores:warn",
         " | This process may use 2 of 24 cores (AMD Ryzen 9 7900). | ", "longer. | ",
         " | Give the process all cores; for a quota: systemctl",
         "for an affinity: taskset"),
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
    # Time that other machines took is told.
    cores.stolen: [
        (changed(WITH, load={"steal": steal}), said)
        for steal, said in ((0.0, ""), (0.02, ""), (0.08, "stolen-time:warn"))
    ],
    # "powersave" is the lowest frequency with some drivers.
    cores.governor: [
        (governed("powersave", "intel_pstate"), "governor:ok"),
        (governed("powersave", "amd-pstate-epp"), "governor:ok"),
        (governed("powersave", "acpi-cpufreq"), "governor:warn"),
        (governed("powersave", "intel_cpufreq"), "governor:warn"),
        (governed("powersave", None), "governor:unknown"),
        (governed("performance", "acpi-cpufreq"), "governor:ok"),
        (governed("schedutil", None), "governor:ok"),
    ],
    # What keeps the cores slow is told.
    cores.limited: [
        (SLOWED, "limited-frequency:warn", " | 2 GHz are allowed of 4 GHz. | ",
         "-u 4000MHz"),
    ],
    cores.saving: [
        (changed(WITH, processor={"preference": "power"}), "saving-power:warn",
         " | echo performance | sudo tee /sys/"),
        (WITH, ""),
    ],
    # Only a laptop has a word about its battery.
    cores.battery: [
        (WITH, ""),
        (changed(WITH, load={"on_battery": False}), "battery:ok"),
        (changed(WITH, load={"on_battery": True}), "battery:warn"),
    ],
    # Swap is trouble only while RAM is short.
    cores.swapping: [
        (swapped(swap, free), said, f"{free} GB of 64 GB are free")
        for swap, free, said in (
            (0, 50, "swap:ok"), (20, 50, "swap:ok"), (1, 2, "swap:ok"),
            (20, 2, "swapping:warn"))
    ],
    # Memory is short where little is granted or left.
    cores.ram: [
        (memory(64, 48 * GB), "memory:ok", " | There is memory to work with | "),
        (memory(64, GB), "little-memory:warn", " | Little memory is left | "),
        (memory(2, 1.9 * GB), "little-memory:warn", " | There is little memory | ",
         "2 GB of RAM may be used of 64 GB", "docker update --memory"),
        (memory(8, None), "memory:ok", " | There is memory to work with | "),
    ],
    # A disk is judged by what it gave cold.
    cores.slow: [
        (disk(**MUCH), "disk:ok"),
        (disk(**MUCH | {"cold": 2e8}), "disk:ok"),
        (disk(**MUCH | {"cold": 9e7}), "slow-disk:warn"),
        (disk(cold=50e6), "slow-disk:warn", "500 files of 100 KB",
         " | The folder is on a disk, read at 50 MB/s from the disk. | "),
        (disk(cold=50e6, filesystem="nfs4"), "slow-disk:warn", "network drive | "),
        (disk(windows=True, cold=1e6), ""),
        (disk(cached=9e9), ""),
        # Small files are blamed for their number, and not the disk.
        (disk(cold=36e6, file_size=60e3), "slow-disk:warn",
         "small files are read slowly: 600 files/s | ", "record file"),
        (disk(cold=36e6, file_size=6e3), "disk:ok"),
        (disk(cold=36e6, file_size=2e6), "slow-disk:warn", "18 files of 2 MB"),
    ],
    # A drive of Windows in WSL is told whatever its speed.
    cores.windows_drive: [
        (disk(windows=True, filesystem="9p"), "windows-drive:warn",
         " | The folder is on 9p. | "),
    ],
}  # fmt: skip

test_cores_memory_and_disk_are_judged_by_what_is_known_of_them = by_rule(CASES)


@pytest.mark.parametrize("processor", [None, Processor()])
@pytest.mark.parametrize("load", [None, Load()])
def test_what_was_not_looked_at_is_not_told(processor, load):
    machine = changed(WITH, processor=processor, load=load, disk=None)
    rules = (cores.busy, cores.stolen, *cores.FREQUENCY, cores.swapping, *cores.DISK)
    assert [check for rule in rules for check in rule(machine)] == []
    # Memory is judged by what there is.
    says(cores.ram, machine, "memory:ok")


def test_half_the_frequency_costs_half_and_an_unknown_driver_nothing():
    (found,) = cores.limited(SLOWED)
    assert found.cost == pytest.approx(0.3)
    (warned,) = cores.governor(governed("powersave", "acpi-cpufreq"))
    (unknown,) = cores.governor(governed("powersave", None))
    assert unknown.cost == 0 < warned.cost
