import math
import subprocess
import sys
from dataclasses import replace

import pytest

from perfkit.machine.checks import checks
from perfkit.machine.checks import software as started
from perfkit.machine.checks.base import Words
from perfkit.machine.record import Proof, Said
from perfkit.machine.starting import child
from perfkit.machine.starting import said as log_said
from tests.machine.checks import computers
from tests.machine.checks.computers import NO_DRIVER, by_rule, changed, proved

WITH, WITHOUT = computers.workstation(), computers.without_card()
FIRST = proved("GPU:0")[0]
BROKEN = Proof(device="GPU:0", computation="convolution", problem="No.")
ENDED = "TensorFlow's process was ended by"
XLA = f"{ENDED} SIGABRT while compiling something tiny with XLA; unknown flag."


def saying(*said, gpus=(), machine=WITH, **facts):
    """A machine whose start logs this, and finds these GPUs."""
    return changed(machine, start=replace(computers.started(*gpus, said=said), **facts))


def proving(*proofs):
    return saying(gpus=("GPU:0",), proofs=proofs)


def fatal(line):
    return saying(Said(line=line, meaning="So.", weight="fatal"))


def failing(problem, **variables):
    return changed(saying(problem=problem), environment=variables)


def ended(problem):
    """A machine whose start has ended so, with a flag for XLA."""
    machine = failing(problem, XLA_FLAGS="--no_such")
    return changed(machine, start=replace(machine.start, devices=(), proofs=()))


LOST = saying(NO_DRIVER, gpus=("GPU:0",))
HIDDEN = changed(saying(), environment={"CUDA_VISIBLE_DEVICES": "-1"})
CAUSED = changed(saying(), software={"build": "cpu"})
SLOW = Said(line="ptxas too old. 1", meaning="Slower.", weight="matters")
CASES = {
    # What each device computed is held against the answer.
    started.computed: [
        (proving(*proved("CPU:0", "GPU:0")), "computes:ok", "convolution on CPU:0",
         "matrix product on GPU:0"),
        *[(proving(replace(FIRST, error=error)), "wrong-on-gpu:fail",
           "rounding explains 0.001") for error in (0.1, math.nan, math.inf)],
        # An error as large as rounding explains is none.
        (proving(replace(FIRST, error=1e-3)), "computes:ok"),
        (proving(replace(FIRST, ran_on="CPU:0")), "passed-on:fail",
         " | GPU:0 leaves its work to another device | ",
         " | The convolution on GPU:0 ran on CPU:0. | "),
        (proving(replace(proved("CPU:0")[0], error=0.1)), "wrong-result:fail",
         " | CPU:0 computes wrongly | ", " | python -m pip install"),
        (proving(BROKEN), "no-result:fail", " | The convolution on GPU:0: No. | "),
    ],
    started.log: [
        # A fatal line counts only where a GPU is lost, or fails to compute.
        (saying(NO_DRIVER, machine=WITHOUT), ""),
        (LOST, ""),
        (saying(NO_DRIVER), "fatal-start-log:fail", f" | {NO_DRIVER.meaning} | ",
         NO_DRIVER.line),
        (saying(NO_DRIVER, gpus=("GPU:0",), proofs=(BROKEN,)), "fatal-start-log:fail"),
        # A line that matters is told once.
        (saying(SLOW, replace(SLOW, line="ptxas too old. 2"), gpus=("GPU:0",)),
         "start-log:warn", " | Slower. | ", "ptxas too old. 1"),
        # Each fatal line has a remedy of its own.
        *[(fatal(line), "fatal-start-log:fail", remedy) for line, remedy in (
            ("set TF_MIN_GPU_MULTIPROCESSOR_COUNT",
             "TF_MIN_GPU_MULTIPROCESSOR_COUNT=1"),
            ("driver version is insufficient", "ubuntu-drivers"),
            ("does not match DSO version", "sudo reboot"),
            ("CUDA_ERROR_DEVICE_UNAVAILABLE", "-c DEFAULT"),
            ("ran out of memory", "nvidia-smi"),
            ("Cannot dlopen some GPU libraries", "export LD_LIBRARY_PATH=$("))],
    ],
    # A start that fails is told in its words.
    started.broken: [
        (ended("It was ended."), "no-start:fail", " | It was ended. | "),
        # One that the system killed wants memory and no new install.
        (ended(f"{ENDED} SIGKILL."), "no-start:fail", " | Close what takes much"),
        (ended(XLA), "flagged-xla:fail", " | unset XLA_FLAGS", "--no_such"),
        # XLA may fail without a flag.
        (failing(XLA), "no-xla:fail", " | python -m pip install"),
        # One that takes long is not known to fail.
        *[(ended(f"Ended after 75 s, while {doing}."), "late-start:unknown")
          for doing in ("importing TensorFlow", child.COMPILING)],
    ],
    started.unseen: [
        (saying(), "unseen-gpu:fail", "NVIDIA RTX A4000", "devices: CPU:0. | "),
        (WITH, ""),
        (WITHOUT, ""),
        # One that is hidden is not missed, nor is it where nothing starts.
        (HIDDEN, ""),
        *[(ended(problem), "") for problem in (
            "It was ended.", f"{ENDED} SIGKILL.", XLA,
            f"Ended after 75 s, while {child.COMPILING}.")],
    ],
}  # fmt: skip

test_a_start_is_judged_by_what_is_known_of_it = by_rule(CASES)


def test_nothing_is_said_of_a_tensorflow_that_was_not_started():
    machine = changed(WITH, start=None)
    assert [check for rule in started.START for check in rule(machine)] == []


@pytest.mark.parametrize(
    ("machine", "fails"),
    [
        (WITH, []),
        (WITHOUT, []),
        (saying(), ["unseen-gpu"]),
        (HIDDEN, ["hidden-gpu"]),
        (CAUSED, ["cpu-only-build"]),
    ],
)
def test_that_tensorflow_finds_no_gpu_is_not_told_beside_its_cause(machine, fails):
    assert [c.id for c in checks(machine) if c.status == "fail"] == fails


@pytest.mark.parametrize(
    "line",
    ["failed call to cuInit: UNKNOWN ERROR (303)", "Could not find cuda drivers on"],
)
def test_only_a_machine_without_a_gpu_is_told_that_none_is_needed(line):
    (said,) = log_said(line)
    consoling = "Without an NVIDIA GPU that is as it should be."
    assert consoling in started.meaning(WITHOUT, said)
    for machine in (WITH, changed(WITHOUT, nvidia_cards=1)):
        assert "Without" not in started.meaning(machine, said)
        assert started.meaning(machine, said).endswith(".")
    (found,) = started.log(saying(said))
    assert (found.status, found.why) == ("fail", started.meaning(WITH, said))


def test_the_folders_of_installed_libraries_are_printed(tmp_path):
    folder = tmp_path / "nvidia/cufft/lib"
    folder.mkdir(parents=True)
    code = Words(WITH)["name_libraries"].split('"')[1]
    path = "__import__('sysconfig').get_path('purelib')"
    code = code.replace(path, repr(str(tmp_path)))
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout.strip() == str(folder)
