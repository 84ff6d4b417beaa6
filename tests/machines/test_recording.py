import getpass
import json
import platform
import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest

import perfkit
from perfkit import cli
from perfkit.errors import BadParameterError, MissingPartError, PerfkitError, RunError
from perfkit.machines import recording
from perfkit.machines.record import load, to_json
from perfkit.machines.recording import (
    MICROBENCHMARKS,
    TRAININGS,
    Recorder,
    new_recorder,
)
from perfkit.measure import plan
from perfkit.progress import Display
from tests.experiments import references
from tests.findings import made, parts
from tests.findings.made import MACHINE
from tests.measure.scripted import Seconds, Session

HOME = str(Path.home())


class Scripted(Seconds):
    """A machine on which every run does what its script says, and takes as long."""

    def __init__(self):
        self.scripts, self.asked = {}, {}

    def script(self, name, finding, *told, each=1.0):
        """Let a run find this, and take so long for each event."""

        def passes():
            self.now += each

        self.scripts[name] = Session(*told, finding=finding, passes=passes)

    def open_session(self, experiment, budget):
        self.asked[experiment.name] = budget
        found = self.scripts[experiment.name]
        if isinstance(found, Exception):
            raise found
        return found


def climbed():
    return parts.finding(samples=SHORT)


def trained():
    run = references.measured()
    names = ("trials", "timings", "comparisons", "baseline")
    fields = {name: getattr(run, name) for name in names}
    return made.finding(experiment=TRAININGS, noise_floor=1.02, samples=SHORT, **fields)


SHORT = {"t": (0.0, 0.2, 0.4), "cpu_trial": (1.0, 1.5, None)}
STEP = plan.Progress(1.0, 2.0)


@pytest.fixture
def machine(monkeypatch):
    scripted = Scripted()
    for name, found in ((MICROBENCHMARKS, climbed()), (TRAININGS, trained())):
        scripted.script(name, found, plan.TrialStarted("a", 1, 0.5), STEP)
    monkeypatch.setattr(recording.runs, "open_session", scripted.open_session)
    monkeypatch.setattr("perfkit.machines.recording.machine", lambda: MACHINE)
    return scripted


def record(machine, *, budget=60.0, **more):
    return Recorder(budget, "lab 7", clock=machine, **more).record(Display())


def test_a_passport_holds_what_both_measurements_found(machine):
    found = record(machine)
    assert [one.name for one in found.microbenchmarks] == list(parts.RATES)
    assert [t.name for t in found.trainings if t.seconds] == [
        *("tiny dense", "small CNN from memory", "small CNN from JPEG"),
        *("small CNN from disk", "wide dense"),
    ]
    assert found.noise_floors[MICROBENCHMARKS] >= 1
    assert found.parameters.keys() == {MICROBENCHMARKS, TRAININGS}
    # The load is that while the trainings ran.
    assert found.samples == SHORT
    assert not found.stopped


def test_the_trainings_get_what_the_microbenchmarks_leave(machine):
    record(machine)
    assert machine.asked[MICROBENCHMARKS] < 0.6 * 60
    assert machine.asked[TRAININGS] == pytest.approx(60 - 2 - 3)


def test_a_measurement_that_takes_too_long_is_ended(machine):
    machine.script(MICROBENCHMARKS, climbed(), *[STEP] * 500)
    found = record(machine)
    assert machine.scripts[MICROBENCHMARKS].stopped
    assert machine.now <= 60 * 1.1
    assert not found.stopped


def test_waiting_for_another_run_is_not_in_the_budget(machine):
    waiting = plan.Preparing("Waiting for another run", waiting=True)
    machine.script(MICROBENCHMARKS, climbed(), *[waiting] * 500, STEP)
    record(machine)
    assert not machine.scripts[MICROBENCHMARKS].stopped
    assert machine.asked[TRAININGS] == pytest.approx(60 - 1 - 3)


def test_an_interrupt_keeps_what_was_measured(machine, tmp_path, capsys):
    machine.script(MICROBENCHMARKS, climbed(), signal.SIGINT, STEP, STEP)
    found = record(machine)
    assert machine.scripts[MICROBENCHMARKS].stopped
    assert TRAININGS not in machine.asked
    assert found.stopped
    # So does the command, which ends with 130.
    machine.script(MICROBENCHMARKS, climbed(), signal.SIGINT, STEP)
    path = tmp_path / "b.json"
    assert cli.main(["passport", "--budget", "60", "-o", str(path)]) == cli.INTERRUPTED
    assert "stopped before it was whole" in capsys.readouterr().out
    kept = load(path)
    assert kept.stopped
    rates = [r.rate for r in found.microbenchmarks]
    assert [r.rate for r in kept.microbenchmarks] == pytest.approx(rates, rel=1e-5)


def test_it_can_be_stopped_before_it_has_begun(machine):
    recorder = Recorder(60.0, "lab 7", clock=machine)
    recorder.stop()
    assert recorder.record(Display()).stopped
    assert machine.asked == {}


def test_a_part_that_cannot_be_measured_is_said_and_the_rest_is_kept(machine):
    fell = RunError("It fell in /home/ada/x.")
    machine.script(MICROBENCHMARKS, None, fell)
    machine.scripts[TRAININGS] = MissingPartError("tensorflow is not installed")
    found = record(machine)
    assert len(found.missed) == 3
    said = '"machine-ladder" was not measured to its end: It fell in <path>'
    assert said in str(found.missed)
    assert "tensorflow is not installed" in found.missed[-1]
    assert found.machine == MACHINE
    assert found.checks


def test_a_budget_that_is_gone_is_said(machine):
    machine.script(MICROBENCHMARKS, climbed(), STEP, each=70.0)
    found = record(machine)
    assert TRAININGS not in machine.asked
    assert found.missed[-1] == 'The budget ended before "reference-trainings".'


def broken(*_):
    raise PerfkitError("The disk is full.")


def test_a_file_that_cannot_be_written_costs_nothing_else(
    machine, tmp_path, monkeypatch
):
    monkeypatch.setattr(recording, "save", broken)
    with pytest.warns(UserWarning, match="The disk is full"):
        found = perfkit.passport(tmp_path / "a.json", budget=60)
    assert found.microbenchmarks


def test_no_name_and_no_path_of_this_machine_is_in_the_file(monkeypatch):
    host = platform.node()
    monkeypatch.setenv("XLA_FLAGS", f"--dump={HOME}/x --who={host}")
    scripts, gone = {MICROBENCHMARKS: climbed(), TRAININGS: trained()}, f"{HOME}/y"

    def opened(experiment, _):
        return Session(RunError(f"Gone: {gone}"), finding=scripts[experiment.name])

    monkeypatch.setattr(recording.runs, "open_session", opened)
    text = to_json(record(Seconds()))
    assert "XLA_FLAGS" in text
    assert HOME not in text
    assert not host or host not in text
    assert json.loads(text)["machine"]["cpu"]


def test_names_are_in_it_where_they_were_asked_for(machine):
    recorder = new_recorder(with_names=True)
    assert recorder.names == (platform.node(), getpass.getuser())
    found = record(machine, names=("dgx-3", "ada"))
    assert (found.host, found.user) == ("dgx-3", "ada")


def test_the_label_is_the_files_name_unless_one_is_given(tmp_path):
    path = tmp_path / "lab-7.json"
    assert new_recorder(path).label == "lab-7"
    assert new_recorder(path, label="desk").label == "desk"
    assert new_recorder().label == "this machine"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"out": "a.txt"}, "ends in .json"),
        ({"out": "no/such/folder/a.json"}, "cannot be written"),
        ({"out": 3}, "give a name such as lab-7.json"),
        ({"out": None, "budget": 0.5}, "seconds from 1 to 3600"),
        ({"out": None, "budget": "soon"}, "give the seconds to spend"),
        ({"out": None, "label": "x" * 81}, "at most 80 letters"),
        ({"out": None, "label": 3}, "at most 80 letters"),
        # A file that is there is never written over.
        ({"out": "mine.json"}, "is there already"),
    ],
)
def test_what_cannot_succeed_is_refused_at_once(tmp_path, monkeypatch, given, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.json").write_text("mine")
    with pytest.raises(BadParameterError, match=said):
        perfkit.passport(**given)
    assert (tmp_path / "mine.json").read_text() == "mine"


def test_the_command_shows_what_is_in_the_file(machine, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "lab-7.json"
    line = ["passport", "--budget", "60", "-o", str(path), "--label", "desk"]
    assert cli.main(line) == cli.DONE
    said = capsys.readouterr().out
    assert said.startswith("Passport of desk, recorded ")
    row = re.search("^small CNN from JPEG.*", said, re.MULTILINE)[0]
    assert "41 ms" in row
    assert "In this file (" in said
    assert "Not in it:" in said
    assert f"Written: {path}" in said


def test_the_microbenchmarks_of_a_finding_are_taken_with_their_limits():
    rates = {one.name: one for one in recording.benchmark_rates(parts.finding())}
    assert list(rates) == list(parts.RATES)
    product = rates[parts.PRODUCT]
    assert (product.unit, product.trials) == ("FLOP", 3)
    assert product.low < product.rate < product.high
    assert product.share == pytest.approx(product.rate / 5e11)
    assert rates["memory copy"].share is None


def test_a_microbenchmark_without_a_rate_says_why_without_names_and_paths():
    failed = made.failed(
        "memory copy", "crashed", "cannot write /home/ada/x: it is full"
    )
    # A trial that was cut short did not fail.
    cut = made.failed("graph call", "stopped", "was at work when the run was stopped")
    finding = parts.finding(
        {parts.PRODUCT: parts.RATES[parts.PRODUCT]},
        notes={"microbenchmarks": parts.note()},
        unavailable={"Python loop": "ada may not"},
    )
    finding = replace(finding, trials=(*finding.trials, failed, cut))
    rates = recording.benchmark_rates(finding, ("ada",))
    assert {one.name: one.missing for one in rates} == {
        parts.PRODUCT: "",
        "memory copy": "It cannot write <path>: it is full.",
        "Python loop": "<name> may not.",
        "graph call": "The run ended before it.",
    }


def test_samples_are_thinned_to_means_with_the_time_of_the_last():
    columns = {"t": (1.0, 2.0, 3.0, 4.0, 5.0), "cpu": (1.0, 3.0, None, 5.0, None)}
    # States have no mean, and are left out.
    columns |= {"gpu0_throttle": (4.0,) * 5, "gpu0_busy": (0.5,) * 5}
    assert recording.thinned(columns, 3) == {
        "t": (2.0, 4.0, 5.0),
        "cpu": (2.0, 5.0, None),
        "gpu0_busy": (0.5, 0.5, 0.5),
    }
    for count in (0, 1, 149, 150, 151, 1000):
        thin = recording.thinned({"t": tuple(float(at) for at in range(count))})
        assert len(thin["t"]) <= recording.SAMPLES
        assert not count or thin["t"][-1] == count - 1
