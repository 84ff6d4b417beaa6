import dataclasses
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.json import decode, encode

from perfkit.machine.collect import Surroundings, machine
from perfkit.machine.gpu import Driver, Gpu
from perfkit.machine.record import Busy, Machine
from tests.machine.trees import (
    LOADED,
    NO_DRIVER,
    WSL1,
    WSL2,
    battery,
    busy,
    computer,
    container,
    described,
    grow,
    meminfo,
    nvidia_card,
    package,
    quota_v2,
    scaling,
    tensorflow,
    ticking,
)


def test_a_computer_is_read_from_proc_and_sys(tmp_path):
    found = described(tmp_path, computer(), {"OMP_NUM_THREADS": "3"})
    assert found.cpu == "Intel Xeon Platinum 8481C"
    assert (found.cores, found.cores_granted) == (8, 8.0)
    assert found.memory == found.memory_present == 32 * 10**6 * 1024
    assert found.system == "Linux 6.8"
    assert found.environment == {"OMP_NUM_THREADS": "3"}
    assert found.versions == {"keras": "3.15.1", "tensorflow": "2.21.0"}
    assert (found.gpus, found.no_gpu, found.nvidia_cards) == ((), NO_DRIVER, 0)


def test_every_part_is_filled(tmp_path):
    files = computer(threads=1) | scaling() | battery()
    after = busy(mine=9, steal=24, others=[("chrome", 90)])
    found = described(tmp_path, files, later=after, libraries=LOADED)
    assert (found.processor.physical_cores, found.processor.governor) == (
        8,
        "powersave",
    )
    assert (found.load.others, found.load.steal) == (3.0, 0.1)
    assert found.load.top == (Busy(program="chrome", cores=3.0),)
    assert found.load.on_battery
    assert found.software.platform == "linux"
    assert (found.software.build, found.software.cuda) == ("cuda", "12.5.1")
    assert found.software.libraries == LOADED
    assert found.software.keras_backend == "tensorflow"


def test_what_is_collected_can_be_written_and_read_again(tmp_path):
    files = computer() | scaling() | battery()
    found = described(tmp_path, files, later=busy(others=[("chrome", 90)]))
    assert decode(encode(found), type=Machine) == found


def test_a_container_grants_less_than_there_is(tmp_path):
    files = computer(cores=16) | container() | quota_v2(cores=2, gigabytes=2)
    found = described(tmp_path, files)
    assert (found.cores, found.cores_granted) == (16, 2.0)
    assert (found.cores_quota, found.cores_affinity) == (2.0, 16)
    assert found.memory == 2 * 10**9
    assert found.memory_present == 32 * 10**6 * 1024
    assert found.software.platform == "container"


@pytest.mark.parametrize(
    ("release", "system"),
    [
        (WSL2, "Linux 5.15 (WSL2)"),
        (WSL1, "Linux 4.4 (WSL)"),
        ("6.1.0-ada-engine", "Linux 6.1"),
    ],
)
def test_the_system_is_named_and_wsl_with_it(tmp_path, release, system):
    assert described(tmp_path, computer(release=release)).system == system


@pytest.mark.parametrize(
    ("files", "cards"),
    [
        (computer() | nvidia_card(), 1),
        (computer() | nvidia_card() | nvidia_card("0000:02:00.0", "0x030200"), 2),
        # Windows keeps its bus to itself.
        (computer(release=WSL2) | nvidia_card(), None),
        ({k: v for k, v in computer().items() if "pci" not in k}, None),
    ],
)
def test_cards_on_the_bus_are_counted_without_a_driver(tmp_path, files, cards):
    assert described(tmp_path, files).nvidia_cards == cards


def test_the_gpus_are_what_their_driver_says(tmp_path):
    card, driver = Gpu(name="NVIDIA H200"), Driver(version="570.133.20")
    found = described(tmp_path, computer(), gpus=[card], driver=driver)
    assert (found.gpus, found.driver, found.no_gpu) == ((card,), driver, "")


def test_a_driver_has_nothing_to_load_where_the_bus_lists_no_card(tmp_path):
    unloaded = {"driver": Driver(problem="not loaded"), "no_gpu": "Restart."}
    found = described(tmp_path, computer(), **unloaded)
    assert found.no_gpu.startswith("No NVIDIA card is on the bus")
    found = described(tmp_path, nvidia_card(), **unloaded)
    assert found.no_gpu == "Restart."


def test_a_processor_without_a_model_name_has_some_name(tmp_path):
    files = computer() | {"proc/cpuinfo": "processor\t: 0\nCPU part\t: 0xd40\n"}
    found = described(tmp_path, files, cpu="aarch64")
    assert (found.cpu, found.cores) == ("aarch64", 1)


def test_a_recorded_virtual_machine_is_what_its_owner_knows_it_to_be(tmp_path):
    recorded = Path(__file__).parent / "recorded/epyc_virtual.json"
    found = described(tmp_path, json.loads(recorded.read_text()))
    assert found.summary == "AMD EPYC, 2 cores, 25.3 GB, no GPU, Linux 6.18"
    assert {"avx2", "fma", "avx512_bf16"} <= set(found.processor.instructions)
    assert "amx_tile" not in found.processor.instructions
    assert (found.processor.physical_cores, found.processor.numa_nodes) == (2, 1)
    assert (found.processor.virtual, found.processor.governor) == (True, None)
    assert found.processor.frequency == pytest.approx(2.6e9, rel=0.01)
    assert (found.load.swap, found.load.swap_present) == (0, 0)
    assert 0 < found.load.memory_free <= found.memory


@pytest.mark.fault(
    "doctor", "no /proc", sees="What can be known otherwise; the rest is not known."
)
def test_a_system_without_proc_is_still_described(tmp_path):
    found = described(
        tmp_path, {}, kind="Darwin", system="macOS 15.1", cpu="arm", packages={}
    )
    assert (found.cpu, found.system, found.cores) == ("arm", "macOS 15.1", 4)
    assert (found.memory, found.load.memory_free) == (8 * 10**9, 5 * 10**9)
    assert found.processor.physical_cores == 2
    assert (found.software.platform, found.software.build) == ("macos", "none")


def test_variables_of_a_loaded_tensorflow_are_told_when_they_were_set(tmp_path):
    started = {"proc/self/environ": "TF_ENABLE_ONEDNN_OPTS=0\0HOME=/\0"}
    seen = {}

    def told(**variables):
        found = described(
            tmp_path,
            computer() | started,
            {"TF_ENABLE_ONEDNN_OPTS": "0"} | variables,
            loaded=("tensorflow",),
            seen=seen,
        )
        return found.software.set_inside, found.software.set_late

    assert told() == ((), ())
    assert told(XLA_FLAGS="x") == (("XLA_FLAGS",), ("XLA_FLAGS",))


def test_the_first_look_cannot_tell_what_came_before_tensorflow(tmp_path):
    files = computer() | {"proc/self/environ": "HOME=/\0"}
    found = described(tmp_path, files, {"XLA_FLAGS": "x"}, loaded=("tensorflow",))
    assert (found.software.set_inside, found.software.set_late) == (("XLA_FLAGS",), ())


def test_without_tensorflow_nothing_is_set_too_late(tmp_path):
    files = computer() | {"proc/self/environ": "HOME=/\0"}
    found = described(tmp_path, files, {"XLA_FLAGS": "x"})
    assert (found.software.set_inside, found.software.set_late) == ((), ())


def test_no_machine_tells_whose_it_is(tmp_path):
    """Its user, host and folders stand in every place that they can stand in."""
    files = computer(model="Xeon of ada on engine") | {
        "proc/self/cgroup": "0::/user.slice/ada.slice\n",
        "proc/self/mountinfo": "1 1 8:1 / /home/ada rw - ext4 /dev/engine rw\n",
        "proc/self/environ": "HOME=/home/ada\0",
    }
    variables = {
        "HOME": "/home/ada",
        "USER": "ada",
        "HOSTNAME": "engine.example.org",
        "VIRTUAL_ENV": "/home/ada/venv",
        "LD_LIBRARY_PATH": "/home/ada/cuda:/usr/local/cuda-12/lib64",
        "KERAS_BACKEND": "ada",
        "XLA_FLAGS": "--xla_dump_to=/home/ada/dump on engine",
        "TF_CPP_VMODULE": "byron=1",
    }
    found = described(
        tmp_path,
        files,
        variables,
        names=("byron",),
        packages=tensorflow(version="2.21.0+ada") | package("numpy", "2.4+byron"),
        later=busy(others=[("ada-backup", 90), ("/home/ada/x", 60), ("engined", 30)]),
        cpu="ada",
    )
    text = json.dumps(dataclasses.asdict(found))
    assert "backup" in text
    for private in ("ada", "byron", "engine", "home", str(tmp_path)):
        assert private not in text


def test_this_computer_does_not_tell_whose_it_is(monkeypatch):
    monkeypatch.setenv("LOGNAME", "ada.byron")
    monkeypatch.setenv("HOME", "/people/countess")
    monkeypatch.setattr(platform, "node", lambda: "engine.example.org")
    environment = {
        "XLA_FLAGS": "--xla_dump_to=/people/countess/dump",
        "TF_CACHE": "ada.byron@engine of countess",
    }
    found = machine(Surroundings(variables=environment))
    assert sorted(found.environment) == ["TF_CACHE", "XLA_FLAGS"]
    text = json.dumps(dataclasses.asdict(found))
    for private in ("ada.byron", "engine", "countess", "people", sys.prefix):
        assert private not in text


def test_this_computer_is_described_in_full():
    found = machine()
    assert found.cores == os.cpu_count()
    assert found.memory_present > 10**8
    assert found.python == platform.python_version()
    assert found.versions["numpy"] == importlib.metadata.version("numpy")
    assert found.load.seconds >= 0.25
    assert found.software.build in ("cuda", "cpu", "metal")


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


def test_a_machine_is_summed_up_on_one_line():
    common = {"cpu": "Xeon", "memory": 16 * 10**9, "system": "Linux 6.1", "python": "3"}
    small = Machine(cores=2, cores_granted=2.0, **common)
    assert small.summary == "Xeon, 2 cores, 16 GB, no GPU, Linux 6.1"
    card = Gpu(name="NVIDIA A4000")
    cut = Machine(cores=8, cores_granted=1.5, gpus=(card, card), **common)
    assert cut.summary == "Xeon, 1.5 of 8 cores, 16 GB, 2 x NVIDIA A4000, Linux 6.1"


SPOILED = {
    "empty": lambda text: b"",
    "binary": lambda text: bytes(range(256)) * 9,
    "cut off": lambda text: text.encode()[: len(text) // 2],
    "huge": lambda text: text.encode() + b"9" * 10**6,
    "all nines": lambda text: b"9" * 5000,
    "below zero": lambda text: re.sub(r"(\d+)", r"-\1", text).encode(),
    "words": lambda text: b"max\nnone: kB\n" * 9,
    "missing": False,
    "a folder": None,
}
SOUND = (
    computer(cores=2)
    | scaling(cores=1)
    | battery()
    | quota_v2(cores=1.5, gigabytes=4)
    | nvidia_card()
    | busy(cores=2, mine=3, steal=1, others=[("chrome", 20)])
    | {"proc/meminfo": meminfo(9, swap=2, swap_free=1)}
    | {"sys/devices/system/cpu/intel_pstate/no_turbo": "0\n"}
    | {f"site/{path}": text for path, text in tensorflow().items()}
)
LATER = ticking(cores=2, ticks=99, mine=6, steal=3, others=[("chrome", 70)])
# A limit of which a digit is lost is still a limit.
ALLOWED = {("sys/fs/cgroup/memory.max", "cut off"): {".load.memory_free"}}


@pytest.mark.parametrize("spoiled", SPOILED)
def test_a_spoiled_file_takes_nothing_else_with_it(tmp_path, spoiled):
    grow(tmp_path, SOUND)
    before = None
    for path in [None, *SOUND]:
        grow(tmp_path, SOUND)
        later = dict(LATER)
        if path:
            spoil(tmp_path / path, SPOILED[spoiled])
            later.pop(path, None)
        found = described(tmp_path, {}, packages={}, later=later)
        restore(tmp_path, path)
        decode(encode(found), type=Machine)
        known = leaves(found)
        before = before or known
        zeros = {place for place, value in known.items() if value == 0}
        assert zeros - before.keys() == set(), path
        invented = {place for place in zeros if before[place] != 0}
        assert invented <= ALLOWED.get((path, spoiled), set()), path
        assert len(before) - len(known) < 20, path


def spoil(file, how):
    text = file.read_text()
    file.unlink()
    if how:
        file.write_bytes(how(text))
    elif how is None:
        file.mkdir()


def restore(root, path):
    if path and (root / path).is_dir():
        (root / path).rmdir()


def leaves(found):
    """Every number and word of a record by its place, without what is not known."""
    rest, known = [("", dataclasses.asdict(found))], {}
    while rest:
        place, value = rest.pop()
        if isinstance(value, dict):
            rest += [(f"{place}.{key}", inner) for key, inner in value.items()]
        elif isinstance(value, list | tuple):
            rest += [(f"{place}.{n}", inner) for n, inner in enumerate(value)]
        elif value is not None and not isinstance(value, bool):
            known[place] = value
    return known
