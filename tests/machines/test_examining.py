import functools
import json
from dataclasses import asdict, replace

import pytest

from perfkit.errors import BadParameterError, RunError
from perfkit.findings import store
from perfkit.machine.record import Disk, Load, Proof, Said, Software, Start
from perfkit.machines import examination
from perfkit.machines.examination import answer, log_of, parts
from perfkit.progress import Display
from tests.findings import made
from tests.findings.test_report import taken_apart
from tests.findings.test_report import written as written_in_short
from tests.machine.checks.computers import proved
from tests.machines import looked

FOUND = Start(seconds=1.0, devices=("CPU:0",))
READ = Disk(filesystem="ext4")


class Stage:
    """What stands in for the machine; a test may let any of it fail."""

    def __init__(self, folder):
        self.done, self.folder = [], folder
        self.faults, self.budgets = {}, []
        self.finding = made.finding(experiment="machine-ladder")
        store.save(self.finding, folder)

    def does(self, name, gives):
        self.done.append(name)
        if name in self.faults:
            raise self.faults[name]
        return gives

    def open_session(self, microbenchmarks, budget):
        self.budgets.append(budget)
        return self

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
        "questions.runs.open_session": made_up.open_session,
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


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"folder": "nowhere"}, "folder is 'nowhere'"),
        ({"folder": 3}, r"give its path\.$"),
        ({"microbenchmarks": "x"}, r"give a finding\.$"),
        ({"microbenchmarks": made.finding(experiment="data-pipeline")},
         "finding of 'data-pipeline'"),
    ],
    ids=["nowhere", "no path", "no finding", "another finding"],
)  # fmt: skip
def test_what_cannot_be_looked_at_is_refused_before_anything_is_done(stage, bad, said):
    with pytest.raises(BadParameterError, match=said):
        look(**bad)
    assert stage.done == []


def test_what_the_start_showed_is_checked(stage):
    assert "no-start" not in {check.id for check in look(probe=True).checks}
    stage.start = Start(problem="Failed while importing TensorFlow.")
    assert look(probe=True).wrong[0].id == "no-start"


def busy(stage):
    """The stage's finding, saved with samples of a GPU that worked, and its file."""
    worked = {"gpu0_busy": (1.0,) * 9, "gpu0_link_generation": (3.0,) * 9}
    found = replace(stage.finding, samples={"t": tuple(range(9))} | worked)
    return found, store.save(found, stage.folder)


def test_microbenchmarks_that_are_there_are_taken_and_their_file_left_alone(stage):
    microbenchmarks, path = busy(stage)
    before = path.read_bytes()
    found = look(microbenchmarks=microbenchmarks)
    assert stage.done == ["machine"]
    assert found.machine.gpus[0].link.busy_generation == 3
    assert found.microbenchmarks.timings == microbenchmarks.timings
    assert path.read_bytes() == before


def test_what_the_gpus_did_goes_into_the_record_and_into_the_saved_finding(stage):
    stage.finding, path = busy(stage)
    found = look(probe=True)
    assert found.machine.gpus[0].link.busy_generation == 3
    assert store.load(path).machine == found.machine == found.microbenchmarks.machine


def test_microbenchmarks_that_were_stopped_or_recorded_are_said_to_be(stage):
    stopped = replace(stage.finding, stopped=True)
    found = look(microbenchmarks=stopped)
    assert found.stopped
    assert found.microbenchmarks.stopped
    stage.done.clear()
    # Recorded ones say nothing of this machine.
    microbenchmarks = replace(stage.finding, replayed=True)
    found = look(microbenchmarks=microbenchmarks)
    assert stage.done == ["machine"]
    assert found.microbenchmarks is None
    assert found.missed == (
        f"The microbenchmarks are not of this machine: {microbenchmarks.stamp}",
    )


def test_microbenchmarks_get_what_is_left_or_the_environment_says(stage, monkeypatch):
    monkeypatch.delenv("PERFKIT_BUDGET", raising=False)
    look(probe=True)
    monkeypatch.setenv("PERFKIT_BUDGET", "2")
    look(probe=True)
    first, second = stage.budgets
    assert 45 <= first <= 125
    # So the session asks the environment itself.
    assert second is None


@pytest.mark.fault(
    "doctor", "full disk", sees="What was measured is shown, and that it was not kept."
)
def test_microbenchmarks_that_could_not_be_saved_are_said(stage):
    stage.unsaved = "It is full. In a notebook it is still there: save it again."
    found = look(probe=True)
    assert found.missed == (
        "Microbenchmarks are shown here but not saved: It is full.",
    )
    assert found.microbenchmarks is not None


# What an examination tells.


def test_what_is_wrong_is_sorted_by_what_it_costs():
    found = looked.examination(looked.SLOW, looked.WELL, looked.WRONG, looked.HIDDEN)
    assert found.wrong == (looked.WRONG, looked.SLOW)
    assert found.fails
    # A warning is no failure.
    assert not looked.examination(looked.SLOW, looked.HIDDEN).fails
    # The summary counts what is well and names what is unknown.
    found = looked.examination(looked.WELL, looked.WELL, looked.HIDDEN)
    assert found.summary() == (
        "2 checks are ok. Not known here: How the GPU is connected."
    )
    assert looked.examination(looked.WELL).summary() == "1 check is ok."


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
    load = Load(others=float("inf"), memory_free=3)
    machine = replace(looked.BARE, load=load)

    def refuse(constant):
        raise AssertionError(constant)

    text = looked.examination(machine=machine).to_json()
    told = json.loads(text, parse_constant=refuse)["machine"]["load"]
    assert (told["others"], told["memory_free"]) == (None, 3)


def test_the_json_says_what_became_of_the_microbenchmarks(tmp_path):
    found = made.finding(experiment="machine-ladder")
    shown = looked.examination(microbenchmarks=found)
    summary = {"file": None, "stopped": False, "verdict": found.verdict.headline}
    assert json.loads(shown.to_json())["microbenchmarks"] == summary
    summary["file"] = store.save(found, tmp_path).name
    assert json.loads(shown.to_json())["microbenchmarks"] == summary


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
        (replace(looked.BARE, nvidia_cards=0), (), "there is no NVIDIA GPU here."),
        (looked.BARE, (MISMATCH,), "trains on the processor: no GPU answers here"),
        (looked.BARE, (LACKING,), "TensorFlow is not installed"),
        (replace(UNTRIED, gpus=(looked.CARD,) * 2), (), "use 2 x NVIDIA RTX 4090;"),
        (replace(UNTRIED, start=Start(devices=("CPU:0",))), (),
         "trains on the processor: it does not find NVIDIA RTX 4090."),
        (replace(UNTRIED, start=Start(devices=("GPU:0",), proofs=(WRONG,))), (),
         "no correct result is shown"),
        (replace(UNTRIED, start=Start(problem="It hung.")), (), "did not start here."),
    ],
)  # fmt: skip
def test_the_first_question_is_answered_from_what_was_seen(machine, checks, said):
    assert said in answer(machine, checks)


def test_every_part_that_is_known_has_its_line_and_others_have_none():
    assert dict(parts(looked.FULL)) == {
        "Processor": "AMD Ryzen 9 7900, 24 of 24 cores, governor powersave",
        "Memory": "60 GB of 64 GB, 50 GB free",
        "GPU": "NVIDIA RTX 4090, 24 GB, compute capability 8.9, PCIe 4 ×16",
        "Driver": "NVIDIA 570.133.20, for CUDA up to 12.8",
        "TensorFlow": "2.21.0, with CUDA 12.5.82 and cuDNN 9.3.0.75, Keras 3.15.1",
        "Start-up": "imported in 4.2 s, GPU:0 computes correctly: convolution and "
        "matrix product",
        "System": "Linux 6.8, Python 3.12.3",
        "Load": "other programs keep 1.2 of 24 cores busy, on battery",
        "Disk": "ext4",
    }
    assert dict(parts(looked.BARE)) == {
        "Processor": "Intel Xeon Platinum 8481C, 2 of 8 cores",
        "Memory": "16 GB",
        "GPU": "No NVIDIA driver is installed.",
        "TensorFlow": "unknown",
        "System": "Linux 6.1, Python 3.11.7",
    }
    # Two gpus are numbered.
    two = replace(looked.FULL, gpus=(looked.CARD, looked.CARD))
    assert [name for name, _ in parts(two) if "GPU" in name] == ["GPU 0", "GPU 1"]


NARROW = replace(looked.CARD, link=replace(looked.CARD.link, width=8))
CPU = Software(platform="linux", build="cpu", packages=("tensorflow-cpu",))


def bare(**facts):
    return replace(looked.BARE, **facts)


def computed(**facts):
    """A start in which a convolution ended so."""
    proof = replace(proved("GPU:0")[0], **facts)
    return bare(start=Start(devices=("GPU:0",), proofs=(proof,)))


@pytest.mark.parametrize(
    ("machine", "part", "said"),
    [
        # A link that lacks lanes is told with what it could have.
        (replace(looked.FULL, gpus=(NARROW,)), "GPU",
         "NVIDIA RTX 4090, 24 GB, compute capability 8.9, PCIe 4 ×8 of 4 ×16"),
        (bare(cores_quota=2.0, cores_affinity=8), "Processor",
         "Intel Xeon Platinum 8481C, 2 of 8 cores (quota)"),
        # A distribution of another name is named.
        (bare(versions={"tensorflow-cpu": "2.21.0"}, software=CPU), "TensorFlow",
         "2.21.0 (tensorflow-cpu), build for CPUs"),
        (bare(software=Software(platform="linux", build="none")), "TensorFlow",
         "not installed"),
        # A wheel for GPUs without their libraries is told from one with.
        (bare(software=looked.FULL.software, versions={"tensorflow": "2.21.0"}),
         "TensorFlow", "2.21.0, without packages of CUDA"),
        # Only what is proved is called right.
        *((computed(**wrong), "Start-up",
           "GPU:0 computes wrongly: convolution")
          for wrong in ({"error": 0.5}, {"ran_on": "CPU:0"})),
        (computed(), "Start-up", "GPU:0 computes correctly: convolution"),
        # A quiet machine is told from one that does not tell.
        (bare(load=Load(others=0.0, on_battery=False)), "Load",
         "other programs keep 0 of 8 cores busy, on mains power"),
        (bare(load=Load()), "Load", "unknown"),
    ],
)  # fmt: skip
def test_a_part_is_said_as_it_is(machine, part, said):
    assert dict(parts(machine))[part] == said


written = functools.partial(written_in_short, in_full=True)


def test_the_answer_comes_first_then_the_parts_and_what_costs_most():
    found = looked.examination(looked.SLOW, looked.WRONG, looked.WELL, looked.HIDDEN)
    said = [
        "GPU:0 computes wrongly.",
        "TensorFlow can use NVIDIA RTX 4090: it computed correctly there.",
        "FAIL: GPU:0 computes wrongly",
        "  The matrix product on GPU:0 is off",
        "WARN: The cores save power",
        "  The governor is powersave.",
        "  Cores run at a lower frequency.",
        "  do: sudo cpupower frequency-set -g performance",
        "Processor",
        "Disk",
        "1 check is ok. Not known here: How the GPU is connected.",
        "What is ok",
        "All cores may be used",
        "What TensorFlow logged at its start",
        "unexplained: ",
        "1 other line is harmless.",
    ]
    shown = taken_apart(found._repr_html_()).texts
    for text in (written(found), "".join(data for _, data in shown)):
        places = [text.index(part) for part in said]
        assert places == sorted(places)
    assert 'may be slower: "ptxas too old" XLA is slower.' in written(found)
    assert "All cores" not in repr(found)


def test_the_first_sentence_says_what_to_do():
    found = looked.examination(looked.SLOW)
    assert "WARN: The cores save power" in repr(found)
    assert "WARN: The cores save power" in found._repr_html_()
    said = repr(found).splitlines()[0]
    command = "sudo cpupower frequency-set -g performance"
    assert said == f"The cores save power: run `{command}`."
    assert "Its cost was not measured." in repr(found)
    assert repr(looked.examination(LONG)).startswith("The cores save power.\n")
    # A machine with nothing wrong is told so.
    text = repr(looked.examination(looked.WELL, machine=looked.BARE))
    assert text.startswith(
        "TensorFlow trains on the processor: no NVIDIA GPU is visible"
    )
    assert text.splitlines()[1] == "perfkit found nothing here that costs speed."
    assert text.endswith("1 check is ok.")


LONG = replace(looked.SLOW, remedy="sudo " + "x" * 90)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_but_a_command_is_wider_than_the_terminal(width):
    long = replace(looked.WRONG, evidence="word " * 80, title="x" * 200)
    found = looked.examination(long, LONG)
    text = written(found, width, terminal=True)
    lines = [line.rstrip() for line in text.splitlines()]
    command = f"  do: {LONG.remedy}"
    assert max(len(line) for line in lines if line != command) <= width
    # It stays in one piece.
    assert f"{command}\n" in text
    assert f"{command}\n" in written(found, width)


def test_whatever_a_machine_says_is_shown_and_never_obeyed():
    hostile = "\x1b[31m<img src=x onerror='x'>\x07 [bold]b[/bold] :smile:\u202e"
    check = replace(
        looked.SLOW, title=hostile, evidence=hostile, why=hostile, remedy=hostile
    )
    start = Start(said=(Said(line=hostile, meaning="", weight="unexplained"),))
    machine = replace(looked.BARE, cpu=hostile, start=start, no_gpu=hostile)
    found = looked.examination(check, machine=machine, missed=(hostile,))
    for terminal in (True, False):
        text = written(found, terminal=terminal)
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert " ".join(text.split()).count("[bold]b[/bold] :smile:") == 10
    assert taken_apart(found._repr_html_()).all("img") == []


def test_the_log_says_what_it_means_on_this_machine():
    said = Said(
        line="failed call to cuInit",
        meaning="No GPU is used. Without an NVIDIA GPU that is as it should be.",
        weight="fatal",
    )
    start = Start(said=(said,), devices=("CPU:0",))
    alone = replace(looked.BARE, start=start)
    lines = [log_of(m)[0] for m in (alone, replace(alone, nvidia_cards=1))]
    assert all(line.startswith('no GPU: "failed call to cuInit"') for line in lines)
    assert [line.count("as it should be") for line in lines] == [1, 0]
    both = replace(start, devices=("CPU:0", "GPU:0"))
    assert log_of(replace(looked.FULL, start=both))[0].startswith("noted: ")


def test_how_fast_each_part_is_has_its_table_and_what_was_missed_is_said_last():
    text = written(looked.examination(microbenchmarks=made.finding()))
    assert "prefetched is the fastest way here." in text
    assert "faster; the fastest here" in text
    found = looked.examination(missed=("No trial ran.",), stopped=True)
    assert repr(found).endswith(
        "No trial ran.\nIt was stopped before all checks were done."
    )


def test_in_a_notebook_the_text_is_given_back_and_not_shown(monkeypatch):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert repr(looked.examination()).startswith("TensorFlow can use")
