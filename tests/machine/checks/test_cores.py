import pytest

from perfkit.machine.checks import cores
from perfkit.machine.record import Busy, Disk, Load, Processor
from tests.machine.checks.computers import GB, changed, says, workstation

WITH = workstation()
TWO = changed(WITH, cores_granted=2.0)
QUOTA, AFFINITY = {"cores_quota": 2.0}, {"cores_affinity": 2}
INSIDE = {"software": {"container": True}}


@pytest.mark.parametrize(
    ("granted", "said"),
    [(24.0, "cores:ok"), (23.5, "cores:ok"), (12.0, "few-cores:warn"),
     (0.5, "few-cores:warn")],
)  # fmt: skip
def test_the_cores_granted_are_held_against_those_present(granted, said):
    machine = changed(WITH, cores_granted=granted)
    says(cores.granted, machine, said, f"{granted:g} of 24 cores")


@pytest.mark.parametrize(
    ("machine", "pieces"),
    [
        (changed(TWO, **QUOTA), ["A quota grants the time of 2. | ", "A quota also",
         "CPUQuota", "~taskset"]),
        (changed(TWO, **QUOTA, **INSIDE), ["A quota grants", "A quota also",
         "docker update --cpus 24", "~cpuset"]),
        (changed(TWO, **AFFINITY), ["Its affinity names 2. | ", "taskset -cp 0-23",
         "~quota"]),
        (changed(TWO, **AFFINITY, **INSIDE), ["Its affinity", "--cpuset-cpus 0-23",
         "~quota"]),
        (changed(WITH, cores_granted=1.5, cores_quota=1.5, cores_affinity=4),
         ["A quota grants the time of 1.5. Its affinity names 4. | ", "CPUQuota",
         "taskset"]),
        # An older record does not say what grants few cores.
        (TWO, [" | This process may use 2 of 24 cores (AMD Ryzen 9 7900). | ",
         "longer. | ", " | Give the process all cores; for a quota: systemctl",
         "for an affinity: taskset"]),
    ],
)  # fmt: skip
def test_what_grants_few_cores_is_told_and_how_to_lift_it(machine, pieces):
    says(cores.granted, machine, "few-cores:warn", *pieces)


TOP = (Busy(program="stress", cores=7.5), Busy(program="chrome", cores=1.25))


@pytest.mark.parametrize(
    ("granted", "others", "said"),
    [
        (24.0, 1.0, "load:ok"),
        (24.0, 6.0, "busy-cores:warn"),
        # A quota of 4 is still free while others leave more than that.
        (4.0, 15.0, "load:ok"),
        (4.0, 23.0, "busy-cores:warn"),
    ],
)
def test_others_cost_what_they_take_of_the_cores_granted(granted, others, said):
    machine = changed(WITH, cores_granted=granted, load={"others": others, "top": TOP})
    says(cores.busy, machine, said, "busy: stress 7.5, chrome 1.2. | ")


@pytest.mark.parametrize(
    ("steal", "said"), [(0.0, ""), (0.02, ""), (0.08, "stolen-time:warn")]
)
def test_time_that_other_machines_took_is_told(steal, said):
    says(cores.stolen, changed(WITH, load={"steal": steal}), said)


@pytest.mark.parametrize("processor", [None, Processor()])
@pytest.mark.parametrize("load", [None, Load()])
def test_what_was_not_looked_at_is_not_told(processor, load):
    machine = changed(WITH, processor=processor, load=load, disk=None)
    rules = (cores.busy, cores.stolen, *cores.FREQUENCY, cores.swapping, *cores.DISK)
    assert [check for rule in rules for check in rule(machine)] == []
    # Memory is judged by what there is.
    says(cores.ram, machine, "memory:ok")


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
    (found,) = cores.governor(changed(WITH, processor=processor))
    assert found.status == status
    assert (found.cost > 0) == (status == "warn")


SLOWED = changed(WITH, processor={"frequency_max": 4e9, "frequency_allowed": 2e9})


@pytest.mark.parametrize(
    ("rule", "machine", "said", "pieces"),
    [
        (cores.limited, SLOWED, "limited-frequency:warn",
         [" | 2 GHz are allowed of 4 GHz. | ", "-u 4000MHz"]),
        (cores.saving, changed(WITH, processor={"preference": "power"}),
         "saving-power:warn", [" | echo performance | sudo tee /sys/"]),
        (cores.saving, WITH, "", []),
        # Only a laptop has a word about its battery.
        (cores.battery, WITH, "", []),
        (cores.battery, changed(WITH, load={"on_battery": False}), "battery:ok", []),
        (cores.battery, changed(WITH, load={"on_battery": True}), "battery:warn", []),
    ],
)  # fmt: skip
def test_what_keeps_the_cores_slow_is_told(rule, machine, said, pieces):
    says(rule, machine, said, *pieces)


def test_half_the_frequency_costs_half():
    (found,) = cores.limited(SLOWED)
    assert found.cost == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("swap", "free", "said"),
    [(0, 50, "swap:ok"), (20, 50, "swap:ok"), (1, 2, "swap:ok"),
     (20, 2, "swapping:warn")],
)  # fmt: skip
def test_swap_is_trouble_only_while_ram_is_short(swap, free, said):
    machine = changed(WITH, load={"swap": swap * GB, "memory_free": free * GB})
    says(cores.swapping, machine, said, f"{free} GB of 64 GB are free")


@pytest.mark.parametrize(
    ("granted", "free", "pieces"),
    [
        (64, 48 * GB, [" | There is memory to work with | "]),
        (64, GB, [" | Little memory is left | "]),
        (2, 1.9 * GB, [" | There is little memory | ",
         "2 GB of RAM may be used of 64 GB", "docker update --memory"]),
        (8, None, [" | There is memory to work with | "]),
    ],
)  # fmt: skip
def test_memory_is_short_where_little_is_granted_or_left(granted, free, pieces):
    machine = changed(WITH, memory=granted * GB, load={"memory_free": free}, **INSIDE)
    (found,) = cores.ram(machine)
    says(cores.ram, machine, f"{found.id}:{found.status}", *pieces)


@pytest.mark.parametrize(
    ("disk", "said", "pieces"),
    [
        ({"cold": 3e9, "cached": 9e9, "filesystem": "ext4"}, "disk:ok", []),
        ({"cold": 2e8, "cached": 9e9, "filesystem": "ext4"}, "disk:ok", []),
        ({"cold": 9e7, "cached": 9e9, "filesystem": "ext4"}, "slow-disk:warn", []),
        ({"cold": 50e6}, "slow-disk:warn", ["500 files of 100 KB",
         " | The folder is on a disk, read at 50 MB/s from the disk. | "]),
        ({"cold": 50e6, "filesystem": "nfs4"}, "slow-disk:warn", ["network drive | "]),
        ({"windows": True, "cold": 1e6}, "", []),
        ({"cached": 9e9}, "", []),
        # Small files are blamed for their number, and not the disk.
        ({"cold": 36e6, "file_size": 60e3}, "slow-disk:warn",
         ["small files are read slowly: 600 files/s | ", "record file"]),
        ({"cold": 36e6, "file_size": 6e3}, "disk:ok", []),
        ({"cold": 36e6, "file_size": 2e6}, "slow-disk:warn", ["18 files of 2 MB"]),
    ],
)  # fmt: skip
def test_a_disk_is_judged_by_what_it_gave_cold(disk, said, pieces):
    says(cores.slow, changed(WITH, disk=Disk(**disk)), said, *pieces)


def test_a_windows_drive_in_wsl_is_told_whatever_its_speed():
    machine = changed(WITH, disk=Disk(windows=True, filesystem="9p"))
    evidence = " | The folder is on 9p. | "
    says(cores.windows_drive, machine, "windows-drive:warn", evidence)
