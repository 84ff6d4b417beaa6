"""What the driver tells of cards, and of those who hold them."""

import subprocess
import sys
from operator import attrgetter
from types import SimpleNamespace
from unittest import mock

import psutil
import pytest

from perfkit.machine import environment, nvml
from perfkit.machine.nvml import UNKNOWN, UNKNOWN_HOLDER, GpuReader
from perfkit.machine.record import Clocks, Driver, Gpu, Holder, Link
from tests.machine.drivers import describe, described, library, script

ONE = "nvmlDeviceGetCount * 1\n"
POWER, WARM, HOT = (
    "power limit reached",
    "too warm, slowed by the driver",
    "too hot, slowed by the hardware",
)
# A 0 that no card can mean is not a value.
ZEROS = "".join(
    f"nvmlDeviceGet{call} 0 0 0\n"
    for call in (
        *("CurrPcieLinkWidth", "MaxPcieLinkGeneration", "NumGpuCores"),
        *("MemoryBusWidth", "PowerUsage", "MemoryInfo", "MaxClockInfo"),
    )
)
OLD_NAME = """\
nvmlDeviceGetCurrentClocksEventReasons 0 !13
nvmlDeviceGetCurrentClocksThrottleReasons 0 0x64
"""
CARDS = (
    *[(ONE + lines, dict.fromkeys(
        ("memory", "compute_capability", "cores", "memory_bus", "memory_used", "busy",
         "holders", "driver"))
       | {"name": UNKNOWN, "link": Link(), "clocks": Clocks(), "divided": False})
      for lines in ("", ZEROS)],
    # The driver's mark for "no value" is no value.
    *[(f"{ONE}nvmlDeviceGetMemoryInfo 0 {mark} {mark}",
       {"memory": None, "memory_used": None}) for mark in (2**32 - 1, 2**64 - 1)],
    # Drivers before 535 have another name for what slows a card.
    (ONE + OLD_NAME, {"clocks.throttle": (POWER, WARM, HOT)}),
    # Of a divided card nobody tells which part of it is ours.
    ("mig_slice", {"name": "NVIDIA A100-SXM4-80GB", "divided": True, "memory": None,
     "memory_used": None, "link.width": 16, "busy": None}),
    ("wsl", {"memory_used": 2**30, "busy": None, "holders": None}),
)  # fmt: skip
# Above the highest number that Linux gives a process.
NOBODY = 4194305
HELD = (
    ("self:1000 parent:2000", "none", [(False, 2000), (True, 1000)]),
    # One that draws and computes is told once.
    ("self:10", "self:10 parent:5", [(True, 10), (False, 5)]),
    # A card that nobody holds has no holders; they are unknown where those that
    # compute are, and not where those that draw are.
    ("none", "none", []),
    ("!3", "parent:5", None),
    ("self:10", "!4", [(True, 10)]),
    # A program out of sight may be ours: those of a container have other numbers.
    *((f"{pid}:7", "none", [(None, 7)]) for pid in (NOBODY, 0, 2**32 - 1)),
    # Memory that the driver hides is not 0.
    ("self:0", "none", [(True, None)]),
)
WITHOUT = (
    ("not_loaded", "not loaded", "installed but not loaded"),
    ("version_mismatch", "mismatch", "updated while it ran"),
    ("no_permission", "no permission", "refuses access"),
    ("nvmlInit * !999", "no answer", "The NVIDIA driver does not answer: Unknown Err"),
    ("nvmlDeviceGetCount * !999", "",
     "The NVIDIA driver does not say which GPUs there are: Unknown Error."),
    ("nvmlDeviceGetCount * 0", "", "The NVIDIA driver reports no GPU."),
)  # fmt: skip


def held(compute, graphics="none"):
    """A machine with a card that processes hold, as pid:bytes."""
    calls = {"Compute": compute, "Graphics": graphics}
    return ONE + "".join(
        f"nvmlDeviceGet{kind}RunningProcesses 0 {answer}\n"
        for kind, answer in calls.items()
    )


def told(machine):
    return describe(machine if "nvml" in machine else script(machine))


def test_a_card_is_described_by_its_driver_in_base_units():
    driver, (gpu,), why = described()["data_centre"]
    assert gpu == Gpu(
        name="NVIDIA H200",
        memory=143771 * 2**20,
        memory_used=2 * 2**30,
        memory_bus=6144,
        driver="580.95.05",
        compute_capability="9.0",
        cores=16896,
        busy=0.87,
        link=Link(generation=5, width=16, generation_max=5, width_max=16),
        clocks=Clocks(sm_max=1.98e9, memory_max=3.201e9, throttle=()),
        holders=(Holder(program="python", memory=2**31, own=True),),
    )
    assert (driver, why) == (Driver(version="580.95.05", cuda="13.0"), "")
    assert described()["wsl"][0].cuda == "12.8"
    assert described()["no_card"][0].version == "570.133.20"


@pytest.mark.parametrize(("machine", "facts"), CARDS)
def test_each_card_is_told_of_as_it_is(machine, facts):
    _, (gpu,), why = told(machine)
    assert {place: attrgetter(place)(gpu) for place in facts} == facts
    assert why == ""


@pytest.mark.parametrize(("compute", "graphics", "holders"), HELD)
def test_those_who_hold_a_card_are_told(compute, graphics, holders):
    _, (gpu,), _ = told(held(compute, graphics))
    listed = gpu.holders and [(h.own, h.memory) for h in gpu.holders]
    assert listed == (holders if holders != [] else ())
    assert {h.program for h in gpu.holders or () if h.own is None} <= {UNKNOWN_HOLDER}


@pytest.mark.parametrize(("machine", "problem", "words"), WITHOUT)
def test_a_driver_that_gives_no_cards_says_why(machine, problem, words):
    driver, gpus, why = told(machine)
    assert (driver, gpus) == (Driver(problem=problem), ())
    assert words in why


def test_no_driver_is_none_and_a_sentence():
    why = "No NVIDIA driver is installed."
    assert describe("nvmlInit * !12") == (None, (), why)
    # Nor is there one for an environment that cannot ask.
    with mock.patch.dict(sys.modules, pynvml=None):
        assert nvml.gpus() == (None, (), why)
        assert GpuReader().sample() == {}


@pytest.mark.fault(
    "doctor", "GPU lost", sees="The doctor lists the card as lost, and says why."
)
def test_a_card_that_is_gone_is_still_told_of_beside_the_other():
    _, (good, gone), why = described()["card_gone"]
    assert good.memory == 80 * 2**30
    assert gone == Gpu(name=UNKNOWN, driver="570.133.20", lost="GPU is lost")
    assert why == ""
    # Unlike cards keep their order.
    _, gpus, _ = described()["two_unlike"]
    assert [gpu.name[-8:] for gpu in gpus] == ["RTX 4090", "GTX 1660"]


NAMES = {
    "python3.11": "python3.11",
    "/opt/secret/train": "train",
    "C:\\jobs\\train.exe": "train.exe",
    "train.py --data x": "train.py",
    "trainer-ada": "trainer-<name>",
    "": UNKNOWN_HOLDER,
}


def test_a_programs_name_is_all_that_is_told_of_it_and_ours_are_known(monkeypatch):
    monkeypatch.setattr(environment, "own_names", lambda: ("ada",))
    # It ends when nothing is written to it any more.
    with subprocess.Popen("cat", stdin=subprocess.PIPE) as started:
        _, (gpu,), _ = describe(held(f"{started.pid}:5"))
        started.stdin.close()
    assert gpu.holders == (Holder(program="cat", memory=5, own=True),)
    for name, shown in NAMES.items():
        monkeypatch.setattr(psutil.Process, "name", lambda _, name=name: name)
        _, (gpu,), _ = describe(held("self:5"))
        assert gpu.holders[0].program == shown


GONE = """\
nvmlDeviceGetCount * 2
nvmlDeviceGetHandleByIndex 0 !15
nvmlDeviceGetTemperature * 50
"""
HEALTHY = {
    "gpu0_busy": 0.87,
    "gpu0_memory": 2 * 2**30,
    "gpu0_power": 412.5,
    "gpu0_sm_clock": 1.98e9,
    "gpu0_temperature": 54.0,
    "gpu0_throttle": 0.0,
    "gpu0_link_generation": 5.0,
    "gpu0_link_width": 16.0,
}


@pytest.mark.parametrize(
    ("machine", "readings"),
    [
        (script("data_centre"), HEALTHY),
        # WSL gives what it gives, and no zeros.
        (script("wsl"), {"gpu0_memory": 2**30, "gpu0_temperature": 61.0,
         "gpu0_link_generation": 4.0, "gpu0_link_width": 8.0}),
        # A card that is gone from the start leaves the other its number.
        (GONE, {"gpu1_temperature": 50.0}),
    ],
    ids=["healthy", "WSL", "one gone"],
)  # fmt: skip
def test_a_card_gives_its_readings_in_base_units_and_again(machine, readings):
    with library(machine):
        reader = GpuReader()
        assert reader.sample() == pytest.approx(readings)
        # One that was closed opens again.
        reader.close()
        assert reader.sample() == pytest.approx(readings)


@pytest.mark.fault("monitor", "GPU lost", sees="The readings of the other card go on.")
def test_a_card_that_falls_off_the_bus_leaves_the_other():
    with library(script("two_cards_one_lost")):
        reader = GpuReader()
        first, second, third = (sorted(reader.sample()) for _ in range(3))
    left = [f"gpu0_{name}" for name in ("busy", "power", "temperature", "throttle")]
    assert len(first) == 8
    # Its thirteenth reading, in the middle of the second sample, is refused.
    assert second == [*left, "gpu1_busy"]
    assert third == left


class RefusalError(Exception):
    """An error of a library that a test plays."""

    value = 3


def test_a_call_that_an_older_library_lacks_is_refused(monkeypatch):
    older = SimpleNamespace(NVMLError=RefusalError)
    monkeypatch.setitem(sys.modules, "pynvml", older)
    with pytest.raises(nvml.RefusedError, match="Function Not Found"):
        nvml.ask("DeviceGetCurrentClocksEventReasons", 0)


@pytest.mark.parametrize("has_newer", [True, False])
def test_memory_is_read_from_the_newer_record_where_there_is_one(
    monkeypatch, has_newer
):
    def read(card, version=None):
        if version and not has_newer:
            raise RefusalError
        # The older record counts what the driver keeps for itself.
        return SimpleNamespace(total=100, used=10 if version else 16)

    card = {"nvmlDeviceGetMemoryInfo": read, "NVMLError": RefusalError}
    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(**card))
    monkeypatch.setattr(nvml, "_is_divided", lambda card: False)
    assert nvml.READINGS["memory"](0) == (10 if has_newer else 16)
