import math
from dataclasses import replace

import pytest

from perfkit.machine.checks import checks, started
from perfkit.machine.record import Proof, Said
from perfkit.machine.starting import child
from perfkit.machine.starting.log import said as log_said
from tests.machine.checks.computers import (
    NO_DRIVER,
    changed,
    proved,
    says,
    without_card,
    workstation,
)
from tests.machine.checks.computers import started as a_start

FIRST = proved("GPU:0")[0]
BROKEN = Proof(device="GPU:0", computation="convolution", problem="No.")


@pytest.mark.parametrize(
    ("proofs", "said", "pieces"),
    [
        (proved("CPU:0", "GPU:0"), "computes:ok",
         ["convolution on CPU:0", "matrix product on GPU:0"]),
        *[([replace(FIRST, error=error)], "wrong-result:fail",
         ["rounding explains 0.001"]) for error in (0.1, math.nan, math.inf)],
        # An error as large as rounding explains is none.
        ([replace(FIRST, error=1e-3)], "computes:ok", []),
        ([replace(FIRST, ran_on="CPU:0")], "no-result:fail",
         [" | GPU:0 leaves its work to another device | ",
         " | The convolution on GPU:0 ran on CPU:0. | "]),
        ([replace(proved("CPU:0")[0], error=0.1)], "wrong-result:fail",
         [" | CPU:0 computes wrongly | ", " | python -m pip install"]),
        ([BROKEN], "no-result:fail", [" | The convolution on GPU:0: No. | "]),
    ],
)  # fmt: skip
def test_what_each_device_computed_is_held_against_the_answer(proofs, said, pieces):
    start = replace(a_start("GPU:0"), proofs=tuple(proofs))
    says(started.computed, changed(workstation(), start=start), said, *pieces)


def test_a_gpu_that_tensorflow_does_not_find_is_a_fault():
    machine = changed(workstation(), start=a_start(said=()))
    (found,) = started.unseen(machine)
    assert "NVIDIA RTX A4000" in found.evidence
    assert found.evidence.endswith("devices: CPU:0.")
    assert list(started.unseen(workstation())) == []
    assert list(started.unseen(without_card())) == []


def test_a_gpu_that_is_hidden_is_not_missed():
    hidden = {"CUDA_VISIBLE_DEVICES": "-1"}
    machine = changed(workstation(), start=a_start(said=()), environment=hidden)
    assert list(started.unseen(machine)) == []


def test_that_tensorflow_finds_no_gpu_is_not_told_beside_its_cause():
    machine = changed(workstation(), start=a_start(said=()))
    assert [c.id for c in checks(machine) if c.status == "fail"] == ["unseen-gpu"]
    caused = changed(machine, software={"build": "cpu"})
    assert [c.id for c in checks(caused) if c.status == "fail"] == ["cpu-only-build"]


def test_a_fatal_line_counts_only_where_a_gpu_is_lost():
    fatal = a_start(said=(NO_DRIVER,))
    assert list(started.log(changed(without_card(), start=fatal))) == []
    found = a_start("GPU:0", said=(NO_DRIVER,))
    assert list(started.log(changed(workstation(), start=found))) == []
    (lost,) = started.log(changed(workstation(), start=fatal))
    assert (lost.status, lost.why) == ("fail", NO_DRIVER.meaning)
    assert NO_DRIVER.line in lost.evidence


def test_a_fatal_line_counts_where_the_gpu_fails_to_compute():
    start = replace(a_start("GPU:0", said=(NO_DRIVER,)), proofs=(BROKEN,))
    assert len(list(started.log(changed(workstation(), start=start)))) == 1


def test_a_line_that_matters_is_told_once():
    line = Said(line="ptxas too old. 1", meaning="Slower.", weight="matters")
    twice = (line, replace(line, line="ptxas too old. 2"))
    (found,) = started.log(changed(workstation(), start=a_start("GPU:0", said=twice)))
    assert (found.status, found.why) == ("warn", "Slower.")
    assert "ptxas too old. 1" in found.evidence


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("set TF_MIN_GPU_MULTIPROCESSOR_COUNT", "TF_MIN_GPU_MULTIPROCESSOR_COUNT=1"),
        ("driver version is insufficient", "ubuntu-drivers"),
        ("does not match DSO version", "sudo reboot"),
        ("CUDA_ERROR_DEVICE_UNAVAILABLE", "-c DEFAULT"),
        ("ran out of memory", "nvidia-smi"),
        ("Cannot dlopen some GPU libraries", "tensorflow[and-cuda]"),
    ],
)
def test_each_fatal_line_has_a_remedy_of_its_own(line, remedy):
    said = Said(line=line, meaning="So.", weight="fatal")
    (found,) = started.log(changed(workstation(), start=a_start(said=(said,))))
    assert remedy in found.remedy


ENDED = "TensorFlow's process was ended by"
XLA = f"{ENDED} SIGABRT while compiling something tiny with XLA; unknown flag."


@pytest.mark.parametrize(
    ("problem", "said", "pieces"),
    [
        ("It was ended.", "no-start:fail", [" | It was ended. | "]),
        # One that the system killed wants memory and no new install.
        (f"{ENDED} SIGKILL.", "no-start:fail", [" | Close what takes much"]),
        (XLA, "no-xla:fail", [" | unset XLA_FLAGS", "--no_such"]),
        # One that takes long is not known to fail.
        ("Ended after 75 s, while importing TensorFlow.", "late-start:unknown", []),
        (f"Ended after 75 s, while {child.COMPILING}.", "late-start:unknown", []),
    ],
)
def test_a_start_that_fails_is_told_in_its_words(problem, said, pieces):
    start = replace(a_start(), devices=(), proofs=(), problem=problem)
    environment = {"XLA_FLAGS": "--no_such"}
    machine = changed(workstation(), start=start, environment=environment)
    says(started.broken, machine, said, *pieces)
    says(started.unseen, machine, "")


def test_xla_may_fail_without_a_flag():
    machine = changed(workstation(), start=replace(a_start(), problem=XLA))
    says(started.broken, machine, "no-xla:fail", " | python -m pip install")


def test_nothing_is_said_of_a_tensorflow_that_was_not_started():
    machine = changed(workstation(), start=None)
    assert [check for rule in started.RULES for check in rule(machine)] == []


@pytest.mark.parametrize(
    "line",
    ["failed call to cuInit: UNKNOWN ERROR (303)", "Could not find cuda drivers on"],
)
def test_only_a_machine_without_a_gpu_is_told_that_none_is_needed(line):
    (said,) = log_said(line)
    consoling = "Without an NVIDIA GPU that is as it should be."
    assert consoling in started.meaning(without_card(), said)
    with_card = changed(without_card(), nvidia_cards=1)
    for machine in (workstation(), with_card):
        assert "Without" not in started.meaning(machine, said)
        assert started.meaning(machine, said).endswith(".")
    (found,) = started.log(changed(workstation(), start=a_start(said=(said,))))
    assert (found.status, found.why) == ("fail", started.meaning(workstation(), said))
