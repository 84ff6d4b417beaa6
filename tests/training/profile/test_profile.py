"""One real trace, read by xprof, and trainings that cannot be traced."""

import functools
import importlib.metadata
import json
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import perfkit
from perfkit.engine.processes import in_process
from perfkit.errors import BadFileError, BadParameterError, RunError
from perfkit.findings import store
from perfkit.findings.profile import Profile
from perfkit.findings.reading import parse
from perfkit.training.diagnose.failure import PROBLEM
from perfkit.training.profile import profile
from perfkit.training.profile.course import STEPPED, stepped
from perfkit.training.profile.profile import gathered
from tests.findings.made import MACHINE
from tests.training.profile import profiled, trainings


def traced(maker, folder, steps=trainings.STEPS):
    return in_process(functools.partial(stepped, maker, steps, str(folder)), 120.0)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A profile of a training whose epochs are shorter than its trace."""
    folder = tmp_path_factory.mktemp("trace")
    ended = traced(trainings.short_epochs, folder)
    found, failed = profile.read(str(folder))
    return gathered(
        profile.notes_of(ended),
        found,
        failed,
        machine=MACHINE,
        training="short_epochs",
        recorded="2026-05-04T10:00:00+02:00",
        xprof=importlib.metadata.version("xprof"),
    )


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
    # One at an end of the trace may be cut, and a busy machine loses a few.
    assert all(-op.count % trainings.STEPS <= trainings.STEPS // 2 for op in products)
    assert {op.device for op in made.table} == {"host"}
    assert any("Batch" in name for name in made.input_stages()["name"])
    # Steps are timed without the tracer, too.
    assert len(made.traced_s) == trainings.STEPS
    assert len(made.untraced_s) >= 2


def test_what_is_saved_of_it_is_read_again(made, tmp_path):
    assert made.missing == {}
    assert perfkit.load(store.save(made, path=tmp_path / "steps.json")) == made


def test_a_loop_of_ones_own_is_traced_and_never_comes_to_its_end(tmp_path):
    mark = tmp_path / "end"
    ended = traced(functools.partial(trainings.loop, str(mark)), tmp_path, steps=3)
    assert len(ended.notes[STEPPED]["traced_s"]) == 3
    assert not mark.exists()


@pytest.mark.parametrize(
    ("maker", "why"),
    [
        (trainings.raising, "The training raised KeyError: 'lost'"),
        (trainings.empty, "The training made no step, because its data are empty"),
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
    silent = "gave no sign of life for 300 s and was ended"
    hangs = SimpleNamespace(notes={}, outcome="timed-out", message=silent)
    with pytest.raises(RunError, match=r"gave no sign .* trace fewer steps\.$"):
        profile.notes_of(hangs)


@pytest.mark.parametrize("steps", [0, 11, 2.0, True, "3"])
def test_what_is_no_number_of_steps_is_refused(steps):
    with pytest.raises(BadParameterError, match="number from 1 to 10"):
        perfkit.profile(trainings.empty, steps=steps)


def test_what_could_not_be_read_is_told_and_the_rest_is_there(monkeypatch, alone_here):
    folders = []

    def process(work, longest):
        folders.append(Path(work.args[2]))
        assert folders[-1].is_dir()
        told = {
            "untraced_s": [0.008, 0.009],
            "traced_s": [0.010] * work.args[1],
            "at_a_time": 1,
            "gpus": 1,
        }
        return SimpleNamespace(notes={STEPPED: told})

    missing = {"ops": "xprof could not read this part of the trace: so."}
    tables = {"steps": (profiled.STEP, profiled.STEP)}
    monkeypatch.setattr(profile, "in_process", process)
    monkeypatch.setattr(profile, "read", lambda folder: (tables, missing))
    monkeypatch.setattr(profile, "machine", lambda: MACHINE)
    monkeypatch.setattr(profile, "launcher", Mock)
    made = perfkit.profile(trainings.short_epochs, steps=4)
    assert made.training == "short_epochs"
    assert len(made.traced_s) == 4
    assert (len(made.steps), made.table) == (2, ())
    assert made.missing["ops"].endswith("so.")
    assert made.missing["device"] in made.report.besides
    assert made.perfkit == importlib.metadata.version("perfkit")
    # The trace is not kept.
    assert [folder.exists() for folder in folders] == [False]


def changed(**changes):
    return json.dumps(json.loads(store.to_json(profiled.profile())) | changes).encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (changed(kind="finding"), "not a profile but a finding"),
        (changed(traced_s=["1"]), r"not a valid profile: .*traced_s\[0\]"),
        (changed(traced_s=[]), r"length >= 1 - at `\$\.traced_s`"),
        (changed(untraced_s=[0.0]), r"> 0\.0 - at `\$\.untraced_s"),
        (changed(traced_s=[1.0] * 1001), r"<= 1000 - at `\$\.traced_s"),
        (changed(steps=[{"name": "a", "seconds": -1, "parts": {}}]), ">= 0"),
    ],
)
def test_what_is_no_sound_profile_is_refused_in_a_sentence(data, why):
    with pytest.raises(BadFileError, match=why):
        parse(data, "steps.json", Profile)


def test_a_table_that_ends_the_process_costs_no_other(monkeypatch):
    def process(work, longest):
        _, tool = work.args
        if tool != profile.TABLES["ops"][0]:
            return SimpleNamespace(notes={}, message="was ended by SIGABRT.")
        empty = '[{"cols": [{"id": "operation"}], "rows": []}]'
        return SimpleNamespace(notes={tool: empty})

    monkeypatch.setattr(profile, "in_process", process)
    tables, missing = profile.read("here")
    assert tables == {"ops": ()}
    said = "xprof could not read this part of the trace: was ended by SIGABRT."
    assert missing == {"steps": said}


@pytest.mark.parametrize("name", profile.TABLES)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '[{"cols": [{"id": "operation"}], "rows": [{"c": [{"v": 1}]}]}]',
        '{"cols": [{"id": "operation"}], "rows": [{"c": 3}]}',
        '[{"cols": [{"id": "stepnum"}, {"id": "opName"}], "rows": [{"c": [null]}]}]',
    ],
)
def test_what_is_no_table_is_told_in_a_sentence(name, text):
    with pytest.raises(BadFileError, match="xprof gave a table that this perfkit"):
        profile.understand(name, text)
