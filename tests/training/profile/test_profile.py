"""One real trace, read by xprof, and trainings that cannot be traced."""

import functools
import importlib.metadata
import importlib.util
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

import perfkit
from perfkit import cli
from perfkit.engine.processes import Ended, in_process
from perfkit.errors import BadFileError, BadParameterError, MissingPartError, RunError
from perfkit.findings import store
from perfkit.findings.profile import Profile
from perfkit.findings.reading import parse
from perfkit.machine.record import Software
from perfkit.training.diagnose.failure import PROBLEM
from perfkit.training.profile import profile
from perfkit.training.profile.course import STEPPED, stepped
from perfkit.training.profile.profile import gathered, why_no_kernels
from tests.findings.made import MACHINE
from tests.training.profile import profiled, trainings

HERE = Path(trainings.__file__)


def traced(maker, folder, steps=trainings.STEPS):
    """What a training tells that is traced in a process of its own."""
    return in_process(functools.partial(stepped, maker, steps, str(folder)), 120.0)


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A trace of a training whose epochs are shorter than the trace."""
    folder = tmp_path_factory.mktemp("trace")
    return folder, traced(trainings.short_epochs, folder)


@pytest.fixture(scope="module")
def made(trace):
    """What is understood of it."""
    folder, ended = trace
    found, failed = profile.read(str(folder))
    return gathered(
        profile.notes_of(ended),
        found,
        failed,
        machine=MACHINE,
        training="short_epochs",
        recorded="2026-05-04T10:00:00+02:00",
        xprof=profile.version(),
    )


def test_every_traced_step_is_marked_as_the_root_of_a_step(trace):
    folder, _ = trace
    marks = perfkit.fresh(functools.partial(trainings.marks_in, str(folder)))
    assert marks == list(range(trainings.STEPS))


def test_xprof_finds_the_steps_their_operations_and_the_stages_of_the_input(made):
    names = [f"train {number}" for number in range(trainings.STEPS)]
    # Some versions leave out the first and the last, which a trace may have cut.
    assert [step.name for step in made.steps] in (names, names[1:-1])
    for step in made.steps:
        assert sum(step.parts.values()) == pytest.approx(step.seconds, rel=0.02)
        assert step.parts["device compute"] == 0.0
    assert "steps" not in made.missing
    products = [op for op in made.table if "MatMul" in op.type]
    assert products
    # As with the steps, one at an end of the trace may be cut.
    assert {-op.count % trainings.STEPS for op in products} <= {0, 1}
    assert {op.device for op in made.table} == {"host"}
    assert any("Batch" in stage.name for stage in made.stages)
    # Steps are timed without the tracer, too.
    assert len(made.traced_s) == trainings.STEPS
    assert len(made.untraced_s) >= 2
    assert made.cost > 0


def test_a_machine_without_a_gpu_is_told_so_and_it_is_read_again(made, tmp_path):
    assert made.kernels().empty
    assert made.missing["kernels"].startswith("TensorFlow computes on no GPU here")
    assert made.memory().empty
    assert made.missing["memory"].startswith("The trace has no record of memory")
    assert perfkit.load(store.save(made, path=tmp_path / "steps.json")) == made


def test_a_loop_of_ones_own_is_traced_and_never_comes_to_its_end(tmp_path):
    mark = tmp_path / "end"
    ended = traced(functools.partial(trainings.loop, str(mark)), tmp_path, steps=3)
    assert len(ended.notes[STEPPED]["traced_s"]) == 3
    assert not mark.exists()
    marks = perfkit.fresh(functools.partial(trainings.marks_in, str(tmp_path)))
    assert marks == [0, 1, 2]


def test_executions_of_several_steps_are_told(tmp_path):
    told = traced(trainings.several_at_once, tmp_path, steps=2).notes[STEPPED]
    assert told["at_a_time"] == 2
    assert len(told["traced_s"]) == 2


@pytest.mark.parametrize(
    ("maker", "why"),
    [
        (trainings.raising, "The training raised KeyError: 'lost'"),
        (trainings.empty, "The training made no step, because its data are empty"),
        (trainings.used_up, "The data ended after"),
        (trainings.profiled_already, "Another profiler runs in this training"),
        (dict, "The function returned"),
    ],
)
def test_a_training_that_cannot_be_traced_is_a_sentence(maker, why, tmp_path):
    ended = traced(maker, tmp_path)
    assert ended.notes[PROBLEM].startswith(why)
    with pytest.raises(RunError, match=why[:20]) as caught:
        profile.notes_of(ended)
    notes = getattr(caught.value, "__notes__", [])
    assert any('raise KeyError("lost")' in n for n in notes) is (why[13:19] == "raised")
    hangs = Ended({}, "timed-out", "gave no sign of life for 300 s and was ended")
    with pytest.raises(RunError, match=r"gave no sign .* give a longer timeout\.$"):
        profile.notes_of(hangs)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        *(({"steps": n}, "number from 1 to 10") for n in (0, 11, 2.0, True, "3")),
        *(({"timeout": s}, "timeout is") for s in (0, -1, "long", True)),
    ],
)
def test_what_is_no_number_of_steps_or_no_time_is_refused(options, said):
    with pytest.raises(BadParameterError, match=said):
        perfkit.profile(trainings.empty, **options)


@pytest.fixture
def scripted(monkeypatch, tmp_path):
    """The verb with a training and an xprof that are scripted; gives its folders."""
    folders = []

    def process(work, longest):
        folders.append(Path(work.args[2]))
        assert folders[-1].is_dir()
        told = {
            "untraced_s": [0.008, 0.009],
            "traced_s": [0.010] * work.args[1],
            "at_a_time": 1,
            "gpus": 1,
            "said": "E] CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
            "bytes": 131_000,
        }
        return Ended({STEPPED: told})

    failed = {profile.MEMORY: "xprof could not read this part of the trace: so."}
    found = profiled.tables()
    del found[profile.MEMORY]
    found[profile.OPS] = "[]"
    monkeypatch.setattr(profile, "in_process", process)
    monkeypatch.setattr(profile, "read", lambda folder: (found, failed))
    monkeypatch.setattr(profile, "machine", lambda: MACHINE)
    monkeypatch.setattr(profile, "launcher", Mock)
    # Where no other run holds the lock.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return folders


def test_what_could_not_be_read_is_told_and_the_rest_is_there(scripted):
    made = perfkit.profile(trainings.short_epochs, steps=4)
    assert made.training == "short_epochs"
    assert len(made.traced_s) == 4
    assert len(made.steps) == len(made.stages) == 2
    assert made.missing["ops"].startswith("xprof gave a table that this perfkit cannot")
    assert made.missing["memory"].endswith("so.")
    assert "RestrictProfilingToAdminUsers=0" in made.missing["kernels"]
    assert made.perfkit == importlib.metadata.version("perfkit")
    # The trace is not kept.
    assert [folder.exists() for folder in scripted] == [False]


def test_the_command_line_shows_a_profile_and_writes_it(scripted, tmp_path, capsys):
    path, chart = tmp_path / "steps.json", tmp_path / "steps.svg"
    options = ["--steps", "4", "--json", str(path), "--chart", str(chart)]
    assert cli.main(["profile", f"{HERE}:short_epochs", *options]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("trainings.py:short_epochs: 4 steps under TensorFlow's")
    assert "<svg" in chart.read_text()
    assert perfkit.load(path).training == "trainings.py:short_epochs"
    assert cli.main(["profile", f"{HERE}:short_epochs", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "profile"


def changed(**changes):
    told = json.loads(store.to_json(profiled.profile()))
    return json.dumps(told | changes).encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (changed(kind="finding"), "not a profile but a finding"),
        (changed(traced_s=["1"]), r"not a valid profile: .*traced_s\[0\]"),
        (changed(traced_s=[]), "it has no times"),
        (changed(untraced_s=[0.0]), "a time is not above 0"),
        (changed(traced_s=[1.0] * 1001), "more than 1000 entries in traced_s"),
        (changed(steps=[{"name": "a", "seconds": -1, "parts": {}}]), "below 0"),
    ],
)
def test_what_is_no_sound_profile_is_refused_in_a_sentence(data, why):
    with pytest.raises(BadFileError, match=why):
        parse(data, "steps.json", Profile)


def breaking(breaks):
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
    process, asked = breaking({})
    found, failed = profile.read("here", process)
    assert set(found) == set(profile.TOOLS)
    assert found[profile.OPS] == "framework_op_stats of here"
    # All of them come from one process.
    assert (failed, len(asked)) == ({}, 1)
    process, asked = breaking(
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
STANDS = "The rest of the profile is here, and perfkit.diagnose needs no kernels."


def machine(platform="linux", *, container=False):
    software = Software(platform=platform, container=container)
    return replace(MACHINE, software=software)


KEPT = "The driver hides the GPU's counters from this user (CUPTI)"
ON_LINUX = "RestrictProfilingToAdminUsers=0"
NOTHING = "The trace has no record of the GPU and gives no reason"


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
        (BROKEN, machine(), "CUPTI, which records what a GPU does, did not work (func"
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
