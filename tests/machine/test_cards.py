"""What the driver tells of cards, and of those who hold them."""

from operator import attrgetter

import pytest

from perfkit.machine.nvml import UNKNOWN, UNKNOWN_HOLDER
from perfkit.machine.record import Clocks, Driver, Gpu, Holder, Link

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
     "memory_used": None, "cores": None, "link.width": 16, "busy": None}),
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
    *((f"self:{memory}", "none", [(True, None)]) for memory in (0, 2**64 - 1)),
)
WITHOUT = (
    ("not_loaded", "not loaded", "installed but not loaded"),
    ("version_mismatch", "mismatch", "updated while it ran"),
    ("no_permission", "no permission", "refuses access"),
    ("nvmlInit * !999", "no answer", "The NVIDIA driver does not answer: Unknown Err"),
    ("nvmlInit * !4711", "no answer", "The NVIDIA driver does not answer: "),
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


@pytest.fixture(scope="module")
def answers(described, describe):
    """What is told of the machines of these tables, by their names or lines."""
    machines = [machine for machine, *_ in (*CARDS, *WITHOUT) if "nvml" in machine]
    machines += [held(compute, graphics) for compute, graphics, _ in HELD]
    return described | dict(zip(machines, describe(*machines), strict=True))


def test_a_card_is_described_by_its_driver_in_base_units(described):
    driver, (gpu,), why = described["data_centre"]
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
    assert described["wsl"][0].cuda == "12.8"
    assert described["no_card"][0].version == "570.133.20"


@pytest.mark.parametrize(("machine", "facts"), CARDS)
def test_each_card_is_told_of_as_it_is(answers, machine, facts):
    _, (gpu,), why = answers[machine]
    assert {place: attrgetter(place)(gpu) for place in facts} == facts
    assert why == ""


@pytest.mark.parametrize(("compute", "graphics", "holders"), HELD)
def test_those_who_hold_a_card_are_told(answers, compute, graphics, holders):
    _, (gpu,), _ = answers[held(compute, graphics)]
    listed = gpu.holders and [(h.own, h.memory) for h in gpu.holders]
    assert listed == (holders if holders != [] else ())
    unseen = {h.program for h in gpu.holders or () if h.own is None}
    assert unseen <= {UNKNOWN_HOLDER}


@pytest.mark.parametrize(("machine", "problem", "words"), WITHOUT)
def test_a_driver_that_gives_no_cards_says_why(answers, machine, problem, words):
    driver, gpus, why = answers[machine]
    assert (driver, gpus) == (Driver(problem=problem), ())
    assert words in why


def test_no_driver_is_none_and_a_sentence(describe, tmp_path):
    # What cannot be loaded stands before a real driver, should this machine have one.
    (tmp_path / "libnvidia-ml.so.1").touch()
    why = "No NVIDIA driver is installed."
    assert describe("", library=tmp_path) == [(None, (), why)]


def test_a_card_that_is_gone_is_still_told_of_beside_the_other(described):
    _, (good, gone), why = described["card_gone"]
    assert good.memory == 80 * 2**30
    assert gone == Gpu(name=UNKNOWN, driver="570.133.20", lost="GPU is lost")
    assert why == ""
    # A card that falls off the bus keeps what it had told.
    _, (good, lost), _ = described["two_cards_one_lost"]
    assert (good.busy, good.lost) == (0.5, "")
    assert (lost.name, lost.lost) == (good.name, "GPU is lost")
    assert lost.busy is lost.compute_capability is None
    # Unlike cards keep their order.
    _, gpus, _ = described["two_unlike"]
    assert [gpu.name[-8:] for gpu in gpus] == ["RTX 4090", "GTX 1660"]


NAMES = {
    "python3.11": "python3.11",
    "/opt/secret/train": "train",
    "C:\\jobs\\train.exe": "train.exe",
    "train.py --data x": "train.py",
    "trainer-ada": "trainer-<name>",
    "": UNKNOWN_HOLDER,
}
# Both that are started end when nothing is written to them any more.
HOLDERS = f"""
import os, psutil, subprocess, sys
inner = "import subprocess; p = subprocess.Popen(['cat']); print(p.pid); p.wait()"
started = subprocess.Popen(
    [sys.executable, "-uc", inner], stdin=-1, stdout=-1, text=True
)
with open(os.environ["NVML_MACHINE"], "r+") as script:
    text = script.read().replace("GRANDCHILD", started.stdout.readline().strip())
    script.seek(0)
    script.write(text)
from perfkit.machine import environment
from perfkit.machine.nvml import gpus
environment.own_names = lambda: ("ada",)
answer = [[holder.program, holder.own] for holder in gpus()[1][0].holders]
for name in {list(NAMES)}:
    psutil.Process.name = lambda process: name
    answer.append(gpus()[1][0].holders[0].program)
"""


def test_a_programs_name_is_all_that_is_told_of_it_and_ours_are_known(ask):
    grandchild, *names = ask(HOLDERS, held("GRANDCHILD:5"))
    assert grandchild == ["cat", True]
    assert names == list(NAMES.values())
