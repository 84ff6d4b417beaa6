"""What xprof makes of a trace, and what it refuses."""

import importlib.util
import json
import sys
from dataclasses import replace

import pytest

from perfkit.engine.processes import Ended
from perfkit.errors import BadFileError, MissingPartError
from perfkit.machine.record import Software
from perfkit.training.profile import profile
from perfkit.training.profile.profile import why_no_kernels
from tests.findings.made import MACHINE
from tests.training.profile import profiled


def scripted(breaks):
    """A process that ends where it comes to one of these tools."""
    asked = []

    def process(work, longest):
        todo = work.args[1]
        asked.append(todo)
        known = {}
        for tool in todo:
            if tool in breaks:
                return Ended(known, "crashed", breaks[tool])
            known[tool] = f"{tool} of {work.args[0]}"
        return Ended(known)

    return process, asked


def test_a_table_that_ends_the_process_costs_no_other():
    process, asked = scripted({})
    found, failed = profile.read("here", process)
    assert set(found) == set(profile.TOOLS)
    assert found[profile.OPS] == "framework_op_stats of here"
    # All of them come from one process.
    assert (failed, len(asked)) == ({}, 1)
    process, asked = scripted(
        {profile.OPS: "was ended by SIGABRT.", profile.MEMORY: ""}
    )
    found, failed = profile.read("here", process)
    assert set(found) == {profile.STEPS, profile.KERNELS}
    said = "xprof could not read this part of the trace: "
    assert failed[profile.OPS] == f"{said}was ended by SIGABRT."
    assert failed[profile.MEMORY] == f"{said}gave nothing."
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("pip", "command"),
    [
        (True, 'python -m pip install "xprof>=2.22"'),
        (
            False,
            ".venv/bin/python -m ensurepip && .venv/bin/python -m pip install "
            '"xprof>=2.22"',
        ),
    ],
)
def test_without_xprof_the_command_that_brings_it_is_told(monkeypatch, pip, command):
    there = {"pip": object()} if pip else {}
    monkeypatch.setattr(importlib.util, "find_spec", there.get)
    monkeypatch.setattr(sys, "prefix", "/home/ada/perfkit/.venv")
    with pytest.raises(MissingPartError) as caught:
        profile.version()
    assert str(caught.value).endswith(f"in this environment: {command}")


# Its tables made into records.


def test_a_step_keeps_all_its_parts_in_seconds():
    text = json.dumps(profiled.steps_table((4.0, 1.0), (5.0, 1.5)))
    first, second = profile.steps(text)
    assert (first.name, second.name) == ("train 0", "train 1")
    parts = {"input": 0.004, "host compute": 0.001, "device compute": 0.0}
    assert first.parts == pytest.approx(parts | {"all other": 0.0005})
    assert second.seconds == pytest.approx(0.007)
    assert sum(second.parts.values()) == pytest.approx(second.seconds)
    # A part that a later xprof tells has its own name.
    made = profiled.steps_table((4.0, 1.0))
    made[1] = profiled.table(
        [{"stepnum": "train 0", "sparseTimeMs": 2.0, "stepTimeMs": 2.0}]
    )
    (step,) = profile.steps(json.dumps(made))
    assert step.parts == {"sparse": 0.002}


def test_stages_come_with_the_most_expensive_first():
    text = json.dumps(profiled.steps_table((4.0, 1.0)))
    stages = profile.stages(text)
    assert [stage.name for stage in stages] == ["Root::Map", "Iterator::Root"]
    assert stages[1].total_s == pytest.approx(0.003)
    assert stages[0].count == 320


def test_idle_time_is_no_operation():
    made = profiled.ops_table(
        ("Host", "IDLE", "IDLE", 0.0, 9e6, 9e6),
        ("Device", "MatMul", "dense/MatMul", 10.0, 300.0, 200.0),
        ("Host", "Dataset", "Iterator::Root", 20.0, 900.0, 600.0),
    )
    for tables in (made, made[:1]):
        found = profile.ops(json.dumps(tables))
        assert [(op.name, op.device) for op in found] == [
            ("Iterator::Root", "host"),
            ("dense/MatMul", "device"),
        ]
    assert found[0].self_s == pytest.approx(600e-6)


def test_a_kernel_tells_whether_it_uses_tensor_cores():
    made = profiled.kernels_table(("sgemm", 100.0, False), ("hgemm", 400.0, True))
    first, second = profile.kernels(json.dumps(made))
    assert first.name == "hgemm"
    assert first.tensor_cores
    assert first.could_use_them
    assert second.total_s == pytest.approx(1e-4)
    assert first.occupancy == 0.5
    assert profile.kernels(json.dumps(profiled.kernels_table())) == ()


def test_memory_is_told_in_bytes_though_xprof_writes_texts():
    text = json.dumps(profiled.memory_table(GPU_0_bfc=353024))
    (held,) = profile.memory(text)
    assert (held.allocator, held.peak, held.peak_ever) == ("GPU_0_bfc", 353024, 543744)
    assert held.capacity == 64 * 2**30
    assert profile.memory(json.dumps(profiled.memory_table())) == ()


@pytest.mark.parametrize("read", [read for _, read in profile._READERS.values()])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '[{"cols": [{"id": "operation"}], "rows": [{"c": [{"v": 1}]}]}]',
        '{"cols": [{"id": "kernel_name"}], "rows": [{"c": 3}]}',
        '[{"cols": [{"id": "stepnum"}, {"id": "opName"}], "rows": [{"c": [null]}]}]',
    ],
)
def test_what_is_no_table_is_told_in_a_sentence(read, text):
    with pytest.raises(BadFileError, match="xprof gave a table that this perfkit"):
        read(text)


def test_what_the_profiler_warns_of_is_found():
    made = profiled.steps_table((4.0, 1.0))
    made[3] = profiled.table([{"severity": "ERROR", "message": "CUPTI was refused"}])
    assert profile.warnings_of(json.dumps(made)) == ("CUPTI was refused",)
    assert profile.warnings_of(json.dumps(profiled.steps_table((4.0, 1.0)))) == ()
    assert profile.warnings_of("none") == ()


# Why a trace holds no kernels, told from logs: no machine here refuses.

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


KEPT = "The driver keeps what its GPU does from this user (CUPTI)"
ON_LINUX = "RestrictProfilingToAdminUsers=0"
NOTHING = "The trace holds nothing of the GPU, and no reason"


@pytest.mark.parametrize(
    ("said", "where", "begins", "holds"),
    [
        # A driver that refuses is told with the remedy.
        (REFUSED, machine(), KEPT, ON_LINUX),
        (REFUSED, machine("wsl2"), KEPT, "NVIDIA's control panel"),
        (REFUSED, machine("container", container=True), KEPT, "--cap-add=SYS_ADMIN"),
        (REFUSED, MACHINE, KEPT, ON_LINUX),
        # The driver has another name for it.
        ("ERR_NVGPUCTRPERM: see", machine(), KEPT, ON_LINUX),
        # A CUPTI that does not work is told in its own words.
        (BROKEN, machine(), "CUPTI, which tells what a GPU does, did not work (function"
         " cupti_interface_->Subscribe failed", 'pip install "tensorflow[and-cuda]"'),
        ("", machine(), f"{NOTHING}. {STANDS}", ""),
        ("", machine("wsl2"), NOTHING, "on WSL and in containers"),
    ],
)  # fmt: skip
def test_a_trace_without_kernels_says_why(said, where, begins, holds):
    why = why_no_kernels(said, 1, where)
    assert why.startswith(begins)
    assert holds in why
    assert why.endswith(STANDS)
    # Without a GPU there are none to tell.
    none = "TensorFlow computes on no GPU here, so there are no kernels."
    assert why_no_kernels(said, 0, where) == none
