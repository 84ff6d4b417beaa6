import json
from dataclasses import asdict, replace

import pytest

from perfkit.errors import BadParameterError, RunError
from perfkit.findings import store
from perfkit.machine.record import Disk, Load, Proof, Start
from perfkit.machines import examination
from perfkit.machines.examination import answer
from perfkit.progress import Display
from tests.findings import made
from tests.findings.test_report import taken_apart, written
from tests.machines import looked

FOUND = Start(seconds=1.0, devices=("CPU:0",))
READ = Disk(filesystem="ext4")


class Stage:
    """What stands in for the machine; a test may let any of it fail."""

    def __init__(self, folder):
        self.done, self.folder = [], folder
        self.faults = {}
        self.finding = made.finding(experiment="machine-ladder")
        store.save(self.finding, folder)

    def does(self, name, gives):
        self.done.append(name)
        if name in self.faults:
            raise self.faults[name]
        return gives

    start, unsaved = FOUND, ""


@pytest.fixture
def stage(monkeypatch, tmp_path):
    made_up = Stage(tmp_path)
    machine = replace(looked.BARE, gpus=(looked.CARD,))
    for name, does in {
        "machines.examination.machine": lambda: made_up.does("machine", machine),
        "machines.examination.disk": lambda folder: made_up.does(
            f"disk {folder}", READ
        ),
        "machines.examination.started": lambda _: made_up.does("start", made_up.start),
        "questions.runs.open_session": lambda *_: made_up,
        "questions.runs.watch": lambda *_: made_up.does("parts", made_up.finding),
    }.items():
        monkeypatch.setattr(f"perfkit.{name}", does)
    return made_up


def look(**how):
    return examination.doctor(display=Display(), **how)


NONE = RunError("No trial could be started.")
STOPPED = KeyboardInterrupt()
EVERY = {"probe": True, "folder": "."}


@pytest.mark.parametrize(
    ("how", "fault", "done", "disk", "start"),
    [
        # Without a probe nothing is started.
        ({}, {}, ["machine"], None, None),
        ({"folder": "."}, {}, ["machine", "disk ."], READ, None),
        # Devices prove themselves without microbenchmarks.
        ({"prove": True}, {}, ["machine", "start"], None, FOUND),
        ({"probe": True}, {}, ["machine", "start", "parts"], None, FOUND),
        # Microbenchmarks that cannot be measured cost nothing else, and an interrupt
        # keeps what was found by then.
        (EVERY, {"parts": NONE}, ["machine", "disk .", "start", "parts"], READ, FOUND),
        (EVERY, {"start": STOPPED}, ["machine", "disk .", "start"], READ, None),
        (EVERY, {"parts": STOPPED}, ["machine", "disk .", "start", "parts"], READ,
         FOUND),
    ],
)  # fmt: skip
def test_what_is_asked_for_is_looked_at_as_far_as_it_goes(
    stage, how, fault, done, disk, start
):
    stage.faults |= fault
    found = look(**how)
    assert stage.done == done
    assert (found.machine.disk, found.machine.start) == (disk, start)
    assert bool(found.microbenchmarks) == ("parts" in done and not fault)
    assert found.checks
    assert found.missed == ((str(NONE),) if NONE in fault.values() else ())
    assert found.stopped == (STOPPED in fault.values())


def test_what_cannot_be_looked_at_is_refused_before_anything_is_done(stage):
    with pytest.raises(BadParameterError, match=r"give its path\.$"):
        look(folder=3)
    assert stage.done == []


def test_what_the_start_showed_is_checked(stage):
    assert "no-start" not in {check.id for check in look(probe=True).checks}
    stage.start = Start(problem="Failed while importing TensorFlow.")
    assert look(probe=True).wrong[0].id == "no-start"


def test_what_the_gpus_did_goes_into_the_record_and_into_the_saved_finding(stage):
    worked = {"gpu0_busy": (1.0,) * 9, "gpu0_link_generation": (3.0,) * 9}
    samples = {"t": tuple(range(9))} | worked
    stage.finding = replace(stage.finding, samples=samples, stopped=True)
    path = store.save(stage.finding, stage.folder)
    found = look(probe=True)
    assert found.machine.gpus[0].link.busy_generation == 3
    assert store.load(path).machine == found.machine == found.microbenchmarks.machine
    assert found.stopped


@pytest.mark.fault(
    "doctor", "full disk", sees="The doctor says that its numbers were not saved."
)
def test_microbenchmarks_that_could_not_be_saved_are_said(stage):
    stage.unsaved = "It is full. In a notebook it is still there: save it again."
    found = look(probe=True)
    assert found.missed == (
        "Microbenchmarks are shown here but not saved: It is full.",
    )
    assert found.microbenchmarks is not None


def test_the_json_has_these_names_and_no_others():
    document = json.loads(looked.examination(looked.SLOW, looked.WELL).to_json())
    assert list(document) == ["schema", "machine", "checks"]
    assert document["schema"] == 2
    assert document["machine"] == json.loads(json.dumps(asdict(looked.FULL)))
    names = ("id", "status", "title", "evidence", "why", "remedy")
    assert document["checks"] == [
        {name: getattr(check, name) for name in names}
        for check in (looked.SLOW, looked.WELL)
    ]
    # A number that json does not have is not known.
    machine = replace(looked.BARE, load=Load(others=float("inf"), memory_free=3))

    def refuse(constant):
        raise AssertionError(constant)

    text = looked.examination(machine=machine).to_json()
    told = json.loads(text, parse_constant=refuse)["machine"]["load"]
    assert (told["others"], told["memory_free"]) == (None, 3)


UNTRIED = replace(looked.FULL, start=None)
LACKING = replace(looked.WRONG, id="no-tensorflow")
MISMATCH = replace(looked.WRONG, id="driver-mismatch")
WRONG = Proof(device="GPU:0", computation="convolution", error=1.0, allowed=1e-3)


@pytest.mark.parametrize(
    ("machine", "checks", "said"),
    [
        (looked.FULL, (), "TensorFlow can use NVIDIA RTX 4090: it computed correctly"),
        (UNTRIED, (), "can probably use NVIDIA RTX 4090; "
         "`perfkit doctor --probe` lets it compute there."),
        (UNTRIED, (looked.WRONG,), "cannot use NVIDIA RTX 4090: the first"),
        (looked.BARE, (), "trains on the processor: no NVIDIA GPU is visible here."),
        (looked.BARE, (MISMATCH,), "trains on the processor: no GPU answers here"),
        (looked.BARE, (LACKING,), "TensorFlow is not installed"),
        (replace(UNTRIED, start=Start(devices=("CPU:0",))), (),
         "trains on the processor: it does not find NVIDIA RTX 4090."),
        (replace(UNTRIED, start=Start(devices=("GPU:0",), proofs=(WRONG,))), (),
         "no correct result is shown"),
        (replace(UNTRIED, start=Start(problem="It hung.")), (), "did not start here."),
    ],
)  # fmt: skip
def test_the_first_question_is_answered_from_what_was_seen(machine, checks, said):
    assert said in answer(machine, checks)


def test_whatever_a_machine_says_is_shown_and_never_obeyed():
    hostile = "\x1b[31m<img src=x onerror='x'>\x07 [bold]b[/bold] :smile:\u202e"
    check = replace(
        looked.SLOW, title=hostile, evidence=hostile, why=hostile, remedy=hostile
    )
    machine = replace(looked.BARE, cpu=hostile, no_gpu=hostile)
    found = looked.examination(check, machine=machine, missed=(hostile,))
    for terminal in (True, False):
        text = written(found, terminal=terminal, in_full=True)
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert " ".join(text.split()).count("[bold]b[/bold] :smile:") == 8
    assert taken_apart(found._repr_html_()).all("img") == []
