import dataclasses
import json
import os
import subprocess
import types
from operator import attrgetter
from unittest.mock import Mock

import psutil
import pytest
from msgspec.json import decode, encode

from perfkit.errors import BadParameterError
from perfkit.machine.collect import bytes_fetched, disk, drop_cached_file
from perfkit.machine.record import Busy, Driver, Gpu, Machine
from tests.machine import trees
from tests.machine.trees import (
    System,
    computer,
    described,
    nvidia_card,
    scaling,
    tensorflow,
)

CARD, DRIVER = Gpu(name="NVIDIA H200"), Driver(version="570.133.20")
UNLOADED = {"driver": (Driver(problem="not loaded"), (), "Restart.")}
NAMELESS = {"proc/cpuinfo": "processor\t: 0\nCPU part\t: 0xd40\n"}
NO_CARD = "No NVIDIA card is on the bus, so its driver has nothing to load."
SUPPLY = "sys/class/power_supply/hidpp_battery_0"
NO_BUS = {path: text for path, text in computer().items() if "pci" not in path}


@pytest.mark.parametrize(
    ("files", "more", "told"),
    [
        (computer(), {"variables": {"OMP_NUM_THREADS": "3"}},
         {"cpu": "Intel Xeon Platinum 8481C", "cores": 8, "cores_granted": 8.0,
          "memory": 32 * 10**9, "memory_present": 32 * 10**9, "system": "Linux 6.8",
          "environment": {"OMP_NUM_THREADS": "3"}, "gpus": (), "nvidia_cards": 0,
          "versions": {"keras": "3.15.1", "tensorflow": "2.21.0"},
          "no_gpu": trees.NO_DRIVER}),
        # A container grants less than there is.
        (computer(cores=16) | trees.container() | trees.quota(2, gigabytes=2),
         {"system": System(cores=16)},
         {"cores": 16, "cores_granted": 2.0,
          "memory": 2 * 10**9, "memory_present": 32 * 10**9,
          "software.platform": "container"}),
        # The system is named, and WSL with it.
        *[(computer(release=release), {}, {"system": system}) for release, system in (
            (trees.WSL2, "Linux 5.15 (WSL)"), ("6.1.0-ada-engine", "Linux 6.1"))],
        # Cards on the bus are counted without a driver; that of Windows is not seen.
        *[(files, {}, {"nvidia_cards": cards}) for files, cards in (
            (computer() | nvidia_card(), 1),
            (computer() | nvidia_card() | nvidia_card("0000:02:00.0", "0x030200"), 2),
            (computer(release=trees.WSL2) | nvidia_card(), None),
            (NO_BUS, None))],
        # The GPUs are what their driver says; without a card it has nothing to load.
        (computer(), {"driver": (DRIVER, (CARD,), "")},
         {"gpus": (CARD,), "driver": DRIVER, "no_gpu": ""}),
        (computer() | nvidia_card(), UNLOADED, {"no_gpu": "Restart."}),
        (computer(), UNLOADED, {"no_gpu": NO_CARD}),
        # Every part is filled.
        (computer() | scaling(),
         {"system": System(programs={"chrome": 3.0}, on_battery=True)},
         {"processor.physical_cores": 4, "processor.governor": "powersave",
          "load.others": 3.0, "load.top": (Busy(program="chrome", cores=3.0),),
          "load.on_battery": True, "software.platform": "linux",
          "software.build": "cuda", "software.cuda": "12.5.1"}),
        # The battery of a mouse feeds no computer.
        *[(computer() | {f"{SUPPLY}/type": "Battery", f"{SUPPLY}/scope": scope},
           {"system": System(on_battery=True)}, {"load.on_battery": told})
          for scope, told in (("Device", None), ("System", True))],
        # Graphics are left out of a name, whose slash begins no path.
        *[(computer(model=f"AMD Ryzen 7 7840HS {graphics} Graphics"), {},
           {"cpu": "AMD Ryzen 7 7840HS"}) for graphics in ("w/ Radeon", "with Radeon")],
        # A processor without a model name has some name.
        (computer() | NAMELESS, {"calls_itself": {"processor": "aarch64"}},
         {"cpu": "aarch64"}),
    ],
)  # fmt: skip
def test_a_computer_is_read_from_proc_and_sys(tmp_path, files, more, told):
    found = described(tmp_path, files, **more)
    assert {place: attrgetter(place)(found) for place in told} == told
    assert decode(encode(found), type=Machine) == found


SILENT = subprocess.TimeoutExpired("sysctl", 1)


@pytest.mark.parametrize(
    ("told", "cpu"), [(Mock(stdout=b"Apple M3\n"), "Apple M3"), (SILENT, "arm")]
)
@pytest.mark.fault("doctor", "no /proc", sees="The doctor uses other sources instead.")
def test_a_system_without_proc_is_still_described(tmp_path, monkeypatch, told, cpu):
    monkeypatch.setattr(subprocess, "run", Mock(side_effect=[told]))
    mac = {"system": "Darwin", "mac_ver": ("15.1", (), ""), "processor": "arm"}
    small = System(cores=4, gigabytes=8, free=5)
    found = described(tmp_path, {}, system=small, packages={}, calls_itself=mac)
    assert (found.cpu, found.system, found.cores) == (cpu, "macOS 15.1", 4)
    assert (found.memory, found.load.memory_free) == (8 * 10**9, 5 * 10**9)
    assert found.processor.physical_cores == 2
    assert (found.software.platform, found.software.build) == ("macos", "none")


def test_no_machine_tells_whose_it_is(tmp_path):
    """Its user, host and folders stand in every place that they can stand in."""
    files = computer(model="Xeon of ada on engine") | {
        "proc/self/cgroup": "0::/user.slice/ada.slice\n"
    }
    variables = {"HOME": "/home/ada", "USER": "ada", "HOSTNAME": "engine.example.org"}
    variables |= {"LD_LIBRARY_PATH": "/home/ada/cuda:/usr/local/cuda-12/lib64"}
    variables |= {"XLA_FLAGS": "--xla_dump_to=/home/ada/dump on engine"}
    variables |= {"TF_CPP_VMODULE": "byron=1"}
    packages = tensorflow(version="2.21.0+ada") | trees.package("numpy", "2.4+byron")
    system = System(programs={"ada-backup": 3.0, "/home/ada/x": 2.0, "engined": 1.0})
    told = {"names": ("byron",), "packages": packages, "system": system}
    found = described(tmp_path, files, variables, **told)
    text = json.dumps(dataclasses.asdict(found))
    assert "backup" in text
    for private in ("ada", "byron", "engine", "home", str(tmp_path)):
        assert private not in text


# The disk under a folder.


@pytest.mark.parametrize("name", ["gone", "a file", "\0", "~nobody-of-this-name/x"])
def test_a_folder_that_is_not_there_is_refused_in_a_sentence(tmp_path, name):
    (tmp_path / "a file").write_text("")
    folder = name if name.startswith("~") else tmp_path / name
    with pytest.raises(BadParameterError, match="give a readable folder"):
        disk(folder)


ROOT = ("/", "ext4", "rw")
# How WSL 2 and WSL 1 show the drives of Windows.
DRIVE = ("/mnt/c", "9p", "rw,dirsync,aname=drvfs;path=C:\\;uid=1000")


@pytest.mark.parametrize(
    ("mounts", "kind", "windows"),
    [
        ([ROOT], "ext4", False),
        ([ROOT, DRIVE], "9p", True),
        ([("/mnt/c", "drvfs", "rw"), ROOT], "drvfs", True),
        # The deepest counts, and a name that begins alike is another place.
        ([ROOT, DRIVE, ("/mnt/c/my disk", "exfat", "rw")], "exfat", False),
        ([ROOT, ("/mnt/c/my", "nfs4", "rw")], "ext4", False),
        # Of two at one place the last is seen.
        ([("/mnt", "autofs", ""), ("/mnt", "nfs4", "rw")], "nfs4", False),
        ([], None, False),
    ],
)
def test_the_file_system_is_told(tmp_path, monkeypatch, mounts, kind, windows):
    told = [
        types.SimpleNamespace(mountpoint=place, fstype=fstype, opts=opts)
        for place, fstype, opts in mounts
    ]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: told)
    place = "/mnt/c/my disk/data"
    monkeypatch.setattr(os.path, "realpath", lambda *_, **__: place)
    monkeypatch.setattr(os, "scandir", lambda _: types.SimpleNamespace(close=list))
    found = disk(tmp_path)
    assert (found.filesystem, found.windows) == (kind, windows)


def test_what_is_cold_here_was_fetched_from_the_disk(tmp_path):
    file = tmp_path / "data"
    file.write_bytes(os.urandom(2_000_000))
    before = bytes_fetched()
    if before is None or not drop_cached_file(str(file)):
        pytest.skip("nobody counts here, or forgets")
    file.read_bytes()
    if bytes_fetched() == before:
        pytest.skip("this file system keeps its files in memory")
    assert bytes_fetched() - before >= 2_000_000
    # What lies in memory by now is not fetched again.
    before = bytes_fetched()
    file.read_bytes()
    assert bytes_fetched() == before
