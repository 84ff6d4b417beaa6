"""Why a trace holds no kernels, told from scripted logs: no machine here refuses."""

from dataclasses import replace

import pytest

from perfkit.machine.record import Software
from perfkit.profiling.traces import why_no_kernels
from tests.findings.made import MACHINE

REFUSED = (
    "2026-05-04 10:00:00.1: E external/xla/cupti_error_manager.cc:213] "
    "cuptiActivityEnable: error 35: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
)
BROKEN = (
    "2026-05-04 10:00:00.1: E external/xla/cupti_tracer.cc:99] "
    "function cupti_interface_->Subscribe failed with error CUPTI could not be loaded"
)
STANDS = "All else is here, and what perfkit.diagnose measures needs none of it."


def machine(platform="linux", *, container=False):
    software = Software(platform=platform, container=container)
    return replace(MACHINE, software=software)


def test_without_a_gpu_there_are_none_to_tell():
    said = why_no_kernels(REFUSED, 0, machine())
    assert said == "TensorFlow computes on no GPU here, so there are no kernels."


@pytest.mark.parametrize(
    ("where", "remedy"),
    [
        (machine(), "RestrictProfilingToAdminUsers=0"),
        (machine("wsl2"), "NVIDIA's control panel"),
        (machine("container", container=True), "--cap-add=SYS_ADMIN"),
        (MACHINE, "RestrictProfilingToAdminUsers=0"),
    ],
)
def test_a_driver_that_refuses_is_told_with_the_remedy(where, remedy):
    said = why_no_kernels(REFUSED, 1, where)
    assert said.startswith("The driver keeps what its GPU does from this user (CUPTI)")
    assert remedy in said
    assert said.endswith(STANDS)


def test_the_drivers_other_name_for_it_is_known():
    assert "keeps what its GPU does" in why_no_kernels(
        "ERR_NVGPUCTRPERM: see the documents", 2, machine()
    )


def test_a_cupti_that_does_not_work_is_told_in_its_own_words():
    said = why_no_kernels(BROKEN, 1, machine())
    assert "(function cupti_interface_->Subscribe failed" in said
    assert 'pip install "tensorflow[and-cuda]"' in said
    assert said.endswith(STANDS)


@pytest.mark.parametrize(
    ("where", "often"), [(machine(), False), (machine("wsl2"), True)]
)
def test_a_trace_that_holds_nothing_of_a_gpu_is_told_too(where, often):
    said = why_no_kernels("", 1, where)
    assert said.startswith("The trace holds nothing of the GPU, and no reason")
    assert ("on WSL and in containers" in said) is often
