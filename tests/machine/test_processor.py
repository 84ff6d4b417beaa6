import types
from unittest.mock import Mock

import pytest

from perfkit.machine.collect import processor
from tests.machine import trees
from tests.machine.trees import AMX, AVX2, computer, counters, cpuinfo, grow, scaling


@pytest.mark.parametrize(
    ("flags", "known", "unknown"),
    [
        (trees.OLD, {"avx", "sse4_2"}, {"avx2", "fma"}),
        (AVX2, {"avx2", "fma"}, {"avx512f"}),
        (trees.AVX512, {"avx512f", "avx512_vnni"}, {"avx512_bf16"}),
        (f"{AVX2} sme sev", {"avx2"}, {"sme"}),
        (AMX, {"amx_tile", "amx_bf16", "avx512_fp16", "avx512_bf16"}, {"sse", "ht"}),
    ],
)
def test_the_instruction_sets_that_matter_are_told(tmp_path, flags, known, unknown):
    found = set(cores_of(tmp_path, computer(flags=flags)).instructions)
    assert known <= found
    assert not unknown & found


def cores_of(root, files, **told):
    return processor(grow(root, files), counters(**told))


UNLIKE = cpuinfo(1, flags=trees.AVX512) + cpuinfo(1, flags=AVX2)
NODES = "sys/devices/system/node"
CPUS = "sys/devices/system/cpu"
ONLY = {"proc/cpuinfo": "processor\t: 0\n"}
ARM = "processor\t: 0\nFeatures\t: fp asimd asimdhp bf16 i8mm sme sve\nCPU part\t: 1\n"
SLOWED = scaling(scaling_max_freq="2100000", energy_performance_preference="power")


@pytest.mark.parametrize(
    ("files", "told"),
    [
        # Where cores differ only what all of them know counts.
        (computer() | {"proc/cpuinfo": UNLIKE},
         {"instructions": ("avx", "avx2", "f16c", "fma", "sse4_1", "sse4_2")}),
        (computer() | {"proc/cpuinfo": ARM}, {"virtual": None,
         "instructions": ("asimd", "asimdhp", "bf16", "i8mm", "sme", "sve")}),
        # Two threads of a core are one core, whichever way it is told.
        (computer(cores=12, threads=2), {"physical_cores": 6}),
        ({k: v for k, v in computer(cores=12).items() if "topology" not in k},
         {"physical_cores": 6}),
        # A node of memory alone is none that has cores.
        (computer() | {f"{NODES}/node0/cpulist": "0-3\n",
         f"{NODES}/node1/cpulist": "4-7\n", f"{NODES}/node2/cpulist": "\n",
         f"{NODES}/online": "0-2\n"}, {"numa_nodes": 2}),
        (computer() | SLOWED, {"frequency_max": 4.2e9, "frequency_allowed": 2.1e9,
         "governor": "powersave", "frequency_driver": "intel_pstate",
         "preference": "power"}),
        # The frequency is the mean over the cores, or what the driver tells.
        ({"proc/cpuinfo": cpuinfo(1, megahertz="1000.000")
          + cpuinfo(1, megahertz="3000.000")}, {"frequency": 2e9}),
        (scaling(driver="cppc_cpufreq") | ONLY, {"frequency": 1.2e9}),
        (computer() | scaling(cpuinfo_max_freq="0", scaling_max_freq="9" * 19),
         {"frequency_max": None, "frequency_allowed": None}),
        *[(computer() | {f"{CPUS}/{file}": text}, {"boost": boost})
          for file, text, boost in (("intel_pstate/no_turbo", "1", False),
                                    ("intel_pstate/no_turbo", "0", True),
                                    ("cpufreq/boost", "1", True),
                                    ("cpufreq/boost", "0", False),
                                    ("cpufreq/boost", "maybe", None))],
        # A hypervisor shows in the flags.
        (computer(flags=AVX2), {"virtual": False}),
        (computer(flags=f"{AVX2} hypervisor"), {"virtual": True}),
    ],
)  # fmt: skip
def test_what_the_files_say_of_the_cores_is_told(tmp_path, files, told):
    found = cores_of(tmp_path, files)
    assert {name: getattr(found, name) for name in told} == told


def test_what_is_not_told_is_unknown(tmp_path):
    # A system without /proc tells what it can.
    speed = types.SimpleNamespace(current=3200, max=0)
    found = cores_of(tmp_path, {}, cpu_freq=lambda: speed)
    assert (found.physical_cores, found.frequency) == (2, 3.2e9)
    assert found.frequency_max is None
    refused = Mock(side_effect=NotImplementedError)
    assert cores_of(tmp_path, {}, cpu_freq=refused).frequency is None
    found = cores_of(tmp_path, ONLY)
    assert {getattr(found, name) for name in found.__dataclass_fields__} == {None}
