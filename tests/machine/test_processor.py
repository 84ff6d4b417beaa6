import types

import pytest

from perfkit.machine.processor import processor
from tests.machine.trees import (
    AMX,
    AVX2,
    AVX512,
    OLD,
    computer,
    counters,
    cpuinfo,
    grow,
    scaling,
)


def cores_of(root, files):
    return processor(grow(root, files), counters())


@pytest.mark.parametrize(
    ("flags", "known", "unknown"),
    [
        (OLD, {"avx", "sse4_2"}, {"avx2", "fma"}),
        (AVX2, {"avx2", "fma"}, {"avx512f"}),
        (AVX512, {"avx512f", "avx512_vnni"}, {"avx512_bf16"}),
        (AMX, {"amx_tile", "amx_bf16", "avx512_fp16", "avx512_bf16"}, {"sse", "ht"}),
    ],
)
def test_the_instruction_sets_that_matter_are_told(tmp_path, flags, known, unknown):
    found = set(cores_of(tmp_path, computer(flags=flags)).instructions)
    assert known <= found
    assert not unknown & found


def test_where_cores_differ_only_what_all_of_them_know_counts(tmp_path):
    both = cpuinfo(1, flags=AVX512) + cpuinfo(1, flags=AVX2)
    found = cores_of(tmp_path, computer() | {"proc/cpuinfo": both})
    assert "avx2" in found.instructions
    assert "avx512f" not in found.instructions


def test_an_arm_processor_names_its_instructions_otherwise(tmp_path):
    text = "processor\t: 0\nFeatures\t: fp asimd asimdhp bf16 i8mm sve\nCPU part\t: 1\n"
    found = cores_of(tmp_path, computer() | {"proc/cpuinfo": text})
    assert found.instructions == ("asimd", "asimdhp", "bf16", "i8mm", "sve")
    assert found.virtual is None


def test_two_threads_of_a_core_are_one_core(tmp_path):
    assert cores_of(tmp_path, computer(cores=12, threads=2)).physical_cores == 6


def test_without_a_topology_the_processors_own_numbers_count(tmp_path):
    files = {k: v for k, v in computer(cores=12).items() if "topology" not in k}
    assert cores_of(tmp_path, files).physical_cores == 6


def test_a_node_of_memory_alone_is_none_that_has_cores(tmp_path):
    nodes = "sys/devices/system/node"
    files = computer() | {
        f"{nodes}/node0/cpulist": "0-3\n",
        f"{nodes}/node1/cpulist": "4-7\n",
        f"{nodes}/node2/cpulist": "\n",
        f"{nodes}/online": "0-2\n",
    }
    assert cores_of(tmp_path, files).numa_nodes == 2


def test_how_the_frequency_is_set_is_told(tmp_path):
    more = {"scaling_max_freq": "2100000", "energy_performance_preference": "power"}
    found = cores_of(tmp_path, computer() | scaling(**more))
    assert (found.frequency_max, found.frequency_allowed) == (4.2e9, 2.1e9)
    assert (found.governor, found.frequency_driver) == ("powersave", "intel_pstate")
    assert found.preference == "power"


def test_the_frequency_is_the_mean_over_the_cores(tmp_path):
    text = cpuinfo(1, megahertz="1000.000") + cpuinfo(1, megahertz="3000.000")
    assert cores_of(tmp_path, {"proc/cpuinfo": text}).frequency == 2e9


def test_where_the_processor_does_not_tell_its_frequency_the_driver_does(tmp_path):
    files = scaling(driver="cppc_cpufreq") | {"proc/cpuinfo": "processor\t: 0\n"}
    assert cores_of(tmp_path, files).frequency == 1.2e9


@pytest.mark.parametrize(
    ("file", "text", "boost"),
    [
        ("intel_pstate/no_turbo", "1", False),
        ("intel_pstate/no_turbo", "0", True),
        ("cpufreq/boost", "1", True),
        ("cpufreq/boost", "0", False),
        ("cpufreq/boost", "maybe", None),
    ],
)
def test_whether_it_may_go_faster_is_told(tmp_path, file, text, boost):
    files = computer() | {f"sys/devices/system/cpu/{file}": text}
    assert cores_of(tmp_path, files).boost is boost


@pytest.mark.parametrize(
    ("flags", "virtual"), [(AVX2, False), (f"{AVX2} hypervisor", True)]
)
def test_a_hypervisor_shows_in_the_flags(tmp_path, flags, virtual):
    assert cores_of(tmp_path, computer(flags=flags)).virtual is virtual


def test_what_linux_does_not_tell_is_unknown(tmp_path):
    found = cores_of(tmp_path, {"proc/cpuinfo": "processor\t: 0\n"})
    assert {getattr(found, name) for name in found.__dataclass_fields__} == {None}


def test_an_absurd_frequency_is_unknown(tmp_path):
    files = scaling(cpuinfo_max_freq="0", scaling_max_freq="9" * 19)
    found = cores_of(tmp_path, computer() | files)
    assert (found.frequency_max, found.frequency_allowed) == (None, None)


def test_a_system_without_proc_tells_what_it_can(tmp_path):
    told = counters(cpu_freq=lambda: types.SimpleNamespace(current=3200, max=0))
    found = processor(tmp_path, told)
    assert (found.physical_cores, found.frequency) == (2, 3.2e9)
    assert found.frequency_max is None


def test_a_system_that_does_not_know_its_frequency_has_none(tmp_path):
    def refused():
        raise NotImplementedError

    assert processor(tmp_path, counters(cpu_freq=refused)).frequency is None
