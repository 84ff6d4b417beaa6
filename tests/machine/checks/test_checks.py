"""Each fault alone is named first, among the quirks that healthy machines have.

A machine is a record, or files and a driver's script, which the collectors then read.
"""

import importlib.metadata
from dataclasses import dataclass, field, replace

import pytest

from perfkit.machine.checks import checks, software
from perfkit.machine.record import Driver, Said, Start
from perfkit.machine.starting import explain_log
from tests.machine import trees
from tests.machine.checks import computers
from tests.machine.checks.computers import card, changed, proved, started
from tests.machine.drivers import described
from tests.machine.trees import CPU, System, computer, container, scaling

ORDER = {"fail": 0, "warn": 0, "unknown": 0, "ok": 1}
WITH, WITHOUT = computers.workstation(), computers.without_card()
SMALL = Said(line="TF_MIN_GPU_MULTIPROCESSOR_COUNT", meaning="So.", weight="fatal")
WELL = {
    "one of eight cards is chosen": changed(
        computers.workstation(*[card()] * 8),
        environment={"CUDA_VISIBLE_DEVICES": "3", "OMP_NUM_THREADS": "24"},
        start=started("GPU:0"),
    ),
    "a rented machine from an image for GPUs": changed(
        WITHOUT,
        versions={"nvidia-cuda-runtime-cu12": "12.5.82"},
        driver=Driver(problem="not loaded"),
        no_gpu="The NVIDIA driver is installed but not loaded: restart the machine.",
        start=started(said=(computers.NO_DRIVER,)),
    ),
    "a small card for the screen is left out": changed(
        computers.workstation(
            computers.looked_at(card()), card("GT 1030", compute_capability="6.1")
        ),
        start=started("GPU:0", said=(SMALL,)),
    ),
}


# A computer with a card in it.
TOWER = computer() | trees.nvidia_card() | scaling()
PROCESSOR_BUILD = trees.tensorflow(CPU, name="tensorflow-cpu")


@dataclass(frozen=True)
class Scripted:
    """A machine that does not exist: its files, its driver's script, TensorFlow's log.

    A faulty one has the name of the rule that must be named first, and a piece of what
    must be told to type.
    """

    name: str
    files: dict = field(default_factory=computer)
    card: str = ""
    remedy: str = ""
    log: str = ""
    more: dict = field(default_factory=dict)

    def read(self, root):
        """Collect it."""
        told = {"driver": described()[self.card]} if self.card else {}
        machine = trees.described(root, self.files, **told | self.more)
        start = Start(
            devices=("CPU:0",), said=explain_log(self.log), proofs=proved("CPU:0")
        )
        return replace(machine, start=start) if self.log else machine


HEALTHY = (
    Scripted("a card at work in a data centre", TOWER, "data_centre"),
    Scripted("two Hoppers at rest", TOWER, "hopper"),
    Scripted("a gaming card whose link sleeps", TOWER, "idle_link"),
    Scripted("a small card for the screen beside a large one", TOWER, "two_unlike"),
    Scripted("WSL with a card", computer(release=trees.WSL2), "wsl"),
    Scripted("a server without a card",
     computer(cores=64) | scaling(governor="performance"),
     log="I0000 00:00:1 1 x.cc:31] Could not find cuda drivers on your machine, GPU "
     "will not be used.", more={"system": System(cores=64, gigabytes=256)}),
    Scripted("a Mac", {}, more={"packages": PROCESSOR_BUILD,
     "calls_itself": {"system": "Darwin", "mac_ver": ("15.1", (), "")}}),
)  # fmt: skip

FAULTY = (
    Scripted("no-driver", TOWER, remedy="sudo ubuntu-drivers install"),
    Scripted("no-driver", TOWER | container(), remedy="docker run --gpus all"),
    Scripted("driver-mismatch", TOWER, "version_mismatch", "sudo reboot"),
    Scripted("driver-not-loaded", TOWER, "not_loaded", "sudo modprobe nvidia"),
    Scripted("driver-refused", TOWER, "no_permission", "usermod -aG"),
    Scripted("reports-none", TOWER, "no_card", "nvidia-smi"),
    Scripted("lost-card", TOWER, "card_gone", "sudo reboot"),
    Scripted("cpu-only-build", TOWER, "idle_link",
     'python -m pip install "tensorflow[and-cuda]==2.21.0"',
     more={"packages": PROCESSOR_BUILD}),
    Scripted("no-tensorflow", remedy="pip install", more={"packages": {}}),
    Scripted("fatal-start-log", TOWER | container(), "gaming",
     "NVIDIA_DRIVER_CAPABILITIES=compute",
     log="E0000 00:00:1 1 cuda_platform.cc:52] failed call to cuInit: INTERNAL: "
     "CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)"),
    Scripted("slow-link", TOWER, "gaming_x8", "BIOS"),
    Scripted("throttled", TOWER, "laptop_throttled", "nvidia-smi -i 0 -q"),
    Scripted("shared-gpu", TOWER, "held", "nvidia-smi -i 0"),
    Scripted("few-cores", TOWER | container() | trees.quota(2, 32, used=3),
     "ampere", "docker update --cpus 8"),
    Scripted("few-cores", remedy="taskset -cp 0-7", more={"affinity": 2}),
    Scripted("little-memory-left", computer(), remedy="top -o %MEM",
     more={"system": System(free=1)}),
    Scripted("busy-cores", computer(), remedy="top",
     more={"system": System(programs={"stress": 3.7, "chrome": 0.4})}),
    Scripted("set-too-late", computer(), remedy="restart the kernel",
     more={"loaded": ("tensorflow",), "seen": {"TF_GPU_THREAD_MODE": "global"},
     "variables": {"TF_GPU_THREAD_MODE": "gpu_private"}}),
)  # fmt: skip


def check_all(found):
    """What costs most comes first; what is well comes last and needs no remedy."""
    keys = [(ORDER[check.status], -check.cost) for check in found]
    assert keys == sorted(keys)
    for check in found:
        assert check.evidence.endswith((".", '"'))
        assert 0 <= check.cost <= 1
        if check.status == "ok":
            assert (check.remedy, check.cost) == ("", 0.0)
        elif check.status != "unknown":
            assert check.cost > 0
            assert all((check.title, check.why, check.remedy))


HEALTHY_IDS = [*WELL, *(machine.name for machine in HEALTHY)]


@pytest.mark.parametrize("machine", [*WELL.values(), *HEALTHY], ids=HEALTHY_IDS)
def test_nothing_is_said_against_a_healthy_machine(machine, tmp_path):
    if isinstance(machine, Scripted):
        machine = machine.read(tmp_path)
    found = checks(machine)
    statuses = {check.status for check in found}
    assert "ok" in statuses
    assert statuses <= {"ok", "unknown"}
    check_all(found)


@pytest.mark.parametrize("machine", FAULTY, ids=lambda machine: machine.name)
def test_what_was_planted_is_named_first_with_what_to_type(machine, tmp_path):
    found = checks(machine.read(tmp_path))
    assert found[0].id == machine.name
    assert found[0].status in ("warn", "fail")
    assert machine.remedy in found[0].remedy
    check_all(found)


OLD_DRIVER = changed(WITH, driver=Driver(version="470.256.02", cuda="11.4"))
OLD_CUDNN = changed(WITH, versions={"nvidia-cudnn-cu12": "9.1.0.70"})


@pytest.mark.parametrize(
    ("machine", "rule"), [(OLD_DRIVER, "driver-too-old"), (OLD_CUDNN, "wrong-cudnn")]
)
def test_a_gpu_that_computes_refutes_that_it_cannot(machine, rule):
    start = started("GPU:0")
    assert "fail" not in {c.status for c in checks(changed(machine, start=start))}
    # One that leaves its work to the processor refutes nothing.
    passed_on = tuple(replace(proof, ran_on="CPU:0") for proof in start.proofs)
    idle = changed(machine, start=replace(start, proofs=passed_on))
    assert checks(idle)[0].id == rule


def test_what_a_machine_says_is_shown_as_it_is_whatever_is_in_it():
    machine = changed(
        WITH, versions={"tensorflow": "2.{x}.{0}"}, software={"build": "cpu"}
    )
    (found,) = (c for c in checks(machine) if c.id == "cpu-only-build")
    assert "2.{x}.{0} has no CUDA" in found.evidence
    # No such version is among those of pip.
    assert found.remedy.endswith('"tensorflow[and-cuda]"')


# The words of the rules.


def test_the_cudnn_of_the_tensorflow_that_is_installed_here_is_known():
    here = {"tensorflow": importlib.metadata.version("tensorflow")}
    machine = changed(WITH, versions=here | {"nvidia-cudnn-cu12": "1.0"})
    assert [check.id for check in software.old_cudnn(machine)] == ["wrong-cudnn"]
