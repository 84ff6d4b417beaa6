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
    without_card,
    workstation,
)
from tests.machine.checks.computers import started as a_start


def computed(*proofs):
    start = replace(a_start("GPU:0"), proofs=proofs)
    return list(started.computed(changed(workstation(), start=start)))


def test_right_results_are_told_together():
    (found,) = computed(*proved("CPU:0", "GPU:0"))
    assert found.status == "ok"
    assert "convolution on CPU:0" in found.evidence
    assert "matrix product on GPU:0" in found.evidence


@pytest.mark.parametrize("error", [0.1, math.nan, math.inf])
def test_a_wrong_result_is_a_fault(error):
    wrong = replace(proved("GPU:0")[0], error=error)
    (found,) = computed(wrong)
    assert (found.id, found.status) == ("wrong-result", "fail")
    assert "rounding explains 0.001" in found.evidence


def test_an_error_as_large_as_rounding_explains_is_none():
    (found,) = computed(replace(proved("GPU:0")[0], error=1e-3))
    assert found.status == "ok"


def test_a_device_that_passes_its_work_on_is_a_fault():
    (found,) = computed(replace(proved("GPU:0")[0], ran_on="CPU:0"))
    assert found.title == "GPU:0 leaves its work to another device"
    assert found.evidence == "The convolution on GPU:0 ran on CPU:0."


def test_a_computation_that_fails_is_told_in_its_words():
    (found,) = computed(Proof(device="GPU:0", computation="convolution", problem="No."))
    assert found.evidence == "The convolution on GPU:0: No."


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
    broken = Proof(device="GPU:0", computation="convolution", problem="No.")
    start = replace(a_start("GPU:0", said=(NO_DRIVER,)), proofs=(broken,))
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


def test_a_start_that_fails_is_told_in_its_words():
    start = replace(a_start(), devices=(), proofs=(), problem="It was ended.")
    (found,) = started.broken(changed(workstation(), start=start))
    assert found.evidence == "It was ended."
    assert list(started.unseen(changed(workstation(), start=start))) == []


def test_a_start_that_the_system_killed_wants_memory_and_no_new_install():
    start = replace(a_start(), problem="TensorFlow's process was ended by SIGKILL.")
    (found,) = started.broken(changed(workstation(), start=start))
    assert found.remedy.startswith("Close what takes much")


def test_nothing_is_said_of_a_tensorflow_that_was_not_started():
    machine = changed(workstation(), start=None)
    assert [check for rule in started.RULES for check in rule(machine)] == []


def test_a_flag_that_ends_xla_is_a_fault_with_its_remedy():
    problem = "TensorFlow's process was ended by SIGABRT while compiling something tiny"
    start = replace(a_start("GPU:0"), problem=f"{problem} with XLA; unknown flag.")
    environment = {"XLA_FLAGS": "--no_such"}
    machine = changed(workstation(), start=start, environment=environment)
    (found,) = started.broken(machine)
    assert (found.id, found.status) == ("no-xla", "fail")
    assert found.remedy.startswith("unset XLA_FLAGS")
    assert "--no_such" in found.evidence


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


@pytest.mark.parametrize("doing", ["importing TensorFlow", child.COMPILING])
def test_a_start_that_takes_long_is_not_known_to_fail(doing):
    start = replace(a_start(), problem=f"Ended after 75 s, while {doing}.")
    (found,) = started.broken(changed(workstation(), start=start))
    assert (found.id, found.status) == ("late-start", "unknown")
