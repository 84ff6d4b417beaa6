from perfkit.machine.nvml import UNKNOWN_HOLDER as UNKNOWN

COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses"
# Above the highest number that Linux gives a process.
NOBODY = 4194305


def held(compute="none", graphics="none"):
    """A machine with a card that processes hold, as pid:bytes."""
    calls = {COMPUTE: compute, GRAPHICS: graphics}
    lines = "".join(f"{call} 0 {answer}\n" for call, answer in calls.items())
    return f"nvmlDeviceGetCount * 1\n{lines}"


def test_own_programs_are_told_from_others(describe):
    found = describe(
        held("self:1000 parent:2000"),
        held("self:10", "self:10 parent:5"),
        held(),
        held("!3", "parent:5"),
        held("self:10", "!4"),
    )
    shared, drawn_on, free, hidden, unseen = (gpu for _, (gpu,), _ in found)
    assert [(h.own, h.memory) for h in shared.holders] == [(False, 2000), (True, 1000)]
    # One that draws and computes is told once.
    assert [(h.own, h.memory) for h in drawn_on.holders] == [(True, 10), (False, 5)]
    # A card that nobody holds has no holders; they are unknown where those that
    # compute are, and not where those that draw are.
    assert (free.holders, hidden.holders) == ((), None)
    assert [h.own for h in unseen.holders] == [True]


def test_a_program_that_one_of_ours_started_is_our_own(ask):
    # Both end when nothing is written to them any more.
    lines = """
import os, subprocess, sys
inner = "import subprocess; p = subprocess.Popen(['cat']); print(p.pid); p.wait()"
started = subprocess.Popen(
    [sys.executable, "-uc", inner], stdin=-1, stdout=-1, text=True
)
with open(os.environ["NVML_MACHINE"], "r+") as script:
    text = script.read().replace("GRANDCHILD", started.stdout.readline().strip())
    script.seek(0)
    script.write(text)
from perfkit.machine.nvml import gpus
answer = [[holder.program, holder.own] for holder in gpus()[1][0].holders]
"""
    assert ask(lines, held("GRANDCHILD:5")) == [["cat", True]]


HIDDEN = (
    # A program out of sight has no name, and may be ours: a container's have others.
    *[(f"{pid}:7", {"program": UNKNOWN, "own": None})
      for pid in (NOBODY, 0, 2**32 - 1)],
    # Memory that the driver hides is not 0.
    *[(f"self:{hidden}", {"memory": None}) for hidden in (0, 2**64 - 1)],
)  # fmt: skip


def test_what_the_driver_hides_of_a_holder_is_not_made_up(describe):
    found = describe(*(held(compute) for compute, _ in HIDDEN))
    for (compute, told), (_, (gpu,), _) in zip(HIDDEN, found, strict=True):
        (holder,) = gpu.holders
        assert {name: getattr(holder, name) for name in told} == told, compute


NAMES = {
    "python3.11": "python3.11",
    "/opt/secret/train": "train",
    "C:\\jobs\\train.exe": "train.exe",
    "train.py --data x": "train.py",
    "trainer-ada": "trainer-<name>",
    "": UNKNOWN,
}


def test_a_programs_name_is_all_that_is_told_of_it(ask):
    lines = f"""
import psutil
from perfkit.machine import environment
environment.own_names = lambda: ("ada",)
from perfkit.machine.nvml import gpus
answer = []
for name in {list(NAMES)}:
    psutil.Process.name = lambda process: name
    answer.append(gpus()[1][0].holders[0].program)
"""
    assert ask(lines, held("self:1")) == list(NAMES.values())
