from perfkit.machine.cards import UNKNOWN_HOLDER as UNKNOWN

COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses"
USED = "nvmlDeviceGetProcessUtilization"
# Above the highest number that Linux gives a process.
NOBODY = 4194305


def held(compute="none", graphics="none", used="!6"):
    """A machine with a card that processes hold, as pid:bytes."""
    calls = {COMPUTE: compute, GRAPHICS: graphics, USED: used}
    lines = "".join(f"{call} 0 {answer}\n" for call, answer in calls.items())
    return f"nvmlDeviceGetCount * 1\n{lines}"


def words(gpu):
    """Those that the driver has for holders that it does not tell."""
    told = gpu.refused.items()
    return {name: word for name, word in told if name.startswith("holders")}


def test_own_programs_are_told_from_others(describe):
    found = describe(
        held("self:1000 parent:2000", used="self:40 parent:60"),
        held("self:10", "self:10 parent:5"),
        held(),
        held("!3", "parent:5"),
    )
    shared, drawn_on, free, hidden = (gpu for _, (gpu,), _ in found)
    both = [(False, 2000, 0.6), (True, 1000, 0.4)]
    assert [(h.own, h.memory, h.busy) for h in shared.holders] == both
    # One that draws is told from one that computes.
    kinds = [(True, True), (False, False)]
    assert [(h.own, h.computes) for h in drawn_on.holders] == kinds
    # A card that nobody holds has no holders.
    assert (free.holders, words(free)) == ((), {})
    # They are unknown where those that compute are.
    assert hidden.holders is None
    assert words(hidden)["holders"] == "Not Supported"


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
from perfkit.machine.cards import gpus
answer = [[holder.program, holder.own] for holder in gpus()[1][0].holders]
"""
    assert ask(lines, held("GRANDCHILD:5")) == [["cat", True]]


HIDDEN = (
    # A program out of sight has no name, and may be ours: a container's have others.
    *[({"compute": f"{pid}:7"}, {"program": UNKNOWN, "own": None}, {})
      for pid in (NOBODY, 0, 2**32 - 1)],
    # Memory that the driver hides is not 0.
    *[({"compute": f"self:{hidden}"}, {"memory": None}, {})
      for hidden in (0, 2**64 - 1)],
    # How busy each is may be refused alone, and those that draw.
    ({"compute": "self:1", "used": "!3"}, {"busy": None},
     {"holders.busy": "Not Supported"}),
    ({"compute": "self:1", "graphics": "!4"}, {"computes": True},
     {"holders.drawing": "Insufficient Permissions"}),
)  # fmt: skip


def test_what_the_driver_hides_of_a_holder_is_not_made_up(describe):
    found = describe(*(held(**asked) for asked, _, _ in HIDDEN))
    for (asked, told, refused), (_, (gpu,), _) in zip(HIDDEN, found, strict=True):
        (holder,) = gpu.holders
        assert {name: getattr(holder, name) for name in told} == told, asked
        assert words(gpu) == refused, asked


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
from perfkit.machine.cards import gpus
answer = []
for name in {list(NAMES)}:
    psutil.Process.name = lambda process: name
    answer.append(gpus()[1][0].holders[0].program)
"""
    assert ask(lines, held("self:1")) == list(NAMES.values())
