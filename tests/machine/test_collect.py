import dataclasses
import importlib.metadata
import json
import os
import platform
import subprocess
import sys

import pytest

from perfkit.machine.collect import machine
from perfkit.machine.record import Gpu, Machine
from tests.machine.trees import computer, grow


def test_a_computer_is_read_from_proc_and_sys(tmp_path):
    found = machine(grow(tmp_path, computer()), {"OMP_NUM_THREADS": "3"})
    assert found.cpu == "Intel Xeon Platinum 8481C"
    assert (found.cores, found.cores_granted) == (8, 8.0)
    assert found.memory == found.memory_present == 32 * 10**6 * 1024
    assert found.system == "Linux 6.8"
    assert found.environment == {"OMP_NUM_THREADS": "3"}
    assert found.python == platform.python_version()
    assert found.versions["numpy"] == importlib.metadata.version("numpy")


def test_a_container_grants_less_than_there_is(tmp_path):
    files = computer(cores=16) | {
        "sys/fs/cgroup/cpu.max": "200000 100000",
        "sys/fs/cgroup/memory.max": "2000000000",
    }
    found = machine(grow(tmp_path, files), {})
    assert (found.cores, found.cores_granted) == (16, 2.0)
    assert found.memory == 2 * 10**9
    assert found.memory_present == 32 * 10**6 * 1024


@pytest.mark.parametrize(
    ("release", "system"),
    [
        ("5.15.153.1-microsoft-standard-WSL2", "Linux 5.15 (WSL2)"),
        ("4.4.0-19041-Microsoft", "Linux 4.4 (WSL)"),
        ("6.1.0-ada-engine", "Linux 6.1"),
    ],
)
def test_the_system_is_named_and_wsl_with_it(tmp_path, release, system):
    assert machine(grow(tmp_path, computer(release=release)), {}).system == system


def test_a_processor_without_a_model_name_has_some_name(tmp_path):
    files = computer() | {"proc/cpuinfo": "processor\t: 0\nCPU part\t: 0xd40\n"}
    found = machine(grow(tmp_path, files), {})
    assert found.cpu
    assert found.cores == 1


def test_a_system_without_proc_is_still_described(tmp_path):
    found = machine(tmp_path, {})
    assert found.cores == os.cpu_count()
    assert found.memory > 10**8
    assert found.system


def test_it_does_not_tell_whose_computer_it_is(monkeypatch):
    monkeypatch.setenv("LOGNAME", "ada.byron")
    monkeypatch.setenv("HOME", "/people/countess")
    monkeypatch.setattr(platform, "node", lambda: "engine.example.org")
    environment = {
        "XLA_FLAGS": "--xla_dump_to=/people/countess/dump",
        "TF_CACHE": "ada.byron@engine of countess",
    }
    found = machine(variables=environment)
    assert sorted(found.environment) == ["TF_CACHE", "XLA_FLAGS"]
    text = json.dumps(dataclasses.asdict(found))
    for private in ("ada.byron", "engine", "countess", "people"):
        assert private not in text


def test_it_needs_neither_tensorflow_nor_numpy():
    lines = """
import sys
from perfkit.machine.collect import machine
machine()
print(sorted({"tensorflow", "keras", "numpy", "pandas"} & set(sys.modules)))
"""
    child = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, check=True
    )
    assert child.stdout.strip() == "[]"


def test_the_gpus_are_those_of_the_driver(ask, scripted):
    lines = """
from perfkit.machine.collect import machine
found = machine()
answer = [[gpu.name for gpu in found.gpus], found.no_gpu]
"""
    assert ask(lines, scripted("data_centre")) == [["NVIDIA H200"], ""]
    names, why = ask(lines, "nvmlInit * !18")
    assert names == []
    assert "restart the machine" in why


def test_a_machine_is_summed_up_on_one_line():
    common = {"cpu": "Xeon", "memory": 16 * 10**9, "system": "Linux 6.1", "python": "3"}
    small = Machine(cores=2, cores_granted=2.0, **common)
    assert small.summary == "Xeon, 2 cores, 16 GB, no GPU, Linux 6.1"
    card = Gpu(name="NVIDIA A4000")
    cut = Machine(cores=8, cores_granted=1.5, gpus=(card, card), **common)
    assert cut.summary == "Xeon, 1.5 of 8 cores, 16 GB, 2 x NVIDIA A4000, Linux 6.1"
