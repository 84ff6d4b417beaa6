import pytest

from perfkit.machine.cards import UNKNOWN_HOLDER as UNKNOWN

HOLDERS = """
import dataclasses
from perfkit.machine.cards import gpus
_, (gpu,), _ = gpus()
answer = [gpu.holders and [dataclasses.asdict(h) for h in gpu.holders], gpu.refused]
"""
COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses"
USED = "nvmlDeviceGetProcessUtilization"
# Above the highest number that Linux gives a process.
NOBODY = 4194305


@pytest.fixture
def held(ask):
    """What is told of a card that processes hold, as pid:bytes, and what is refused."""

    def describe(compute="none", graphics="none", used="!6", before=""):
        calls = {COMPUTE: compute, GRAPHICS: graphics, USED: used}
        script = "".join(f"{call} 0 {answer}\n" for call, answer in calls.items())
        return ask(f"{before}\n{HOLDERS}", f"nvmlDeviceGetCount * 1\n{script}")

    return describe


def told(found, *names):
    return [tuple(holder[name] for name in names) for holder in found]


def test_own_programs_are_told_from_others(held):
    found, _ = held("self:1000 parent:2000", used="self:40 parent:60")
    both = [(False, 2000, 0.6), (True, 1000, 0.4)]
    assert told(found, "own", "memory", "busy") == both
    # One that draws is told from one that computes.
    found, _ = held("self:10", "self:10 parent:5")
    assert told(found, "own", "computes") == [(True, True), (False, False)]
    # A card that nobody holds has no holders.
    found, refused = held()
    assert found == []
    assert not {name for name in refused if name.startswith("holders")}
    # They are unknown where those that compute are.
    found, refused = held("!3", "parent:5")
    assert found is None
    assert refused["holders"] == "Not Supported"


def test_a_program_that_one_of_ours_started_is_our_own(held):
    # Both end when nothing is written to them any more.
    before = """
import os, subprocess, sys
inner = "import subprocess; p = subprocess.Popen(['cat']); print(p.pid); p.wait()"
started = subprocess.Popen(
    [sys.executable, "-uc", inner], stdin=-1, stdout=-1, text=True
)
with open(os.environ["NVML_MACHINE"], "r+") as script:
    text = script.read().replace("GRANDCHILD", started.stdout.readline().strip())
    script.seek(0)
    script.write(text)
"""
    found, _ = held("GRANDCHILD:5", before=before)
    assert told(found, "program", "own") == [("cat", True)]


@pytest.mark.parametrize(
    ("asked", "told", "refused"),
    [
        # A program out of sight has no name and is not ours.
        *[({"compute": f"{pid}:7"}, {"program": UNKNOWN, "own": False}, {})
          for pid in (NOBODY, 0, 2**32 - 1)],
        # Memory that the driver hides is not 0.
        *[({"compute": f"self:{hidden}"}, {"memory": None}, {})
          for hidden in (0, 2**64 - 1)],
        # How busy each is may be refused alone, and those that draw.
        ({"compute": "self:1", "used": "!3"}, {"busy": None},
         {"holders.busy": "Not Supported"}),
        ({"compute": "self:1", "graphics": "!4"}, {"computes": True},
         {"holders.drawing": "Insufficient Permissions"}),
    ],
)  # fmt: skip
def test_what_the_driver_hides_of_a_holder_is_not_made_up(held, asked, told, refused):
    (holder,), words = held(**asked)
    assert told.items() <= holder.items()
    said = {name: word for name, word in words.items() if name.startswith("holders")}
    assert said == refused


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("python3.11", "python3.11"),
        ("/opt/secret/train", "train"),
        ("C:\\jobs\\train.exe", "train.exe"),
        ("train.py --data x", "train.py"),
        ("trainer-ada", "trainer-<name>"),
        ("", UNKNOWN),
    ],
)
def test_a_programs_name_is_all_that_is_told_of_it(held, name, shown):
    before = f"""
import psutil
from perfkit.machine import environment
environment.own_names = lambda: ("ada",)
psutil.Process.name = lambda process: {name!r}
"""
    (holder,), _ = held("self:1", before=before)
    assert holder["program"] == shown
