import signal
from dataclasses import replace
from unittest.mock import Mock

import pytest

import perfkit
from perfkit import cli
from perfkit.engine import plan
from perfkit.errors import BadParameterError, MissingPartError, PerfkitError, RunError
from perfkit.findings.store import read
from perfkit.machines import recording
from perfkit.machines.record import Passport
from perfkit.machines.recording import (
    MICROBENCHMARKS,
    TRAININGS,
    Recorder,
    new_recorder,
)
from perfkit.progress import Display
from tests.engine.scripted import Seconds, Session
from tests.findings import made, parts
from tests.findings.made import MACHINE
from tests.questions import references


class Scripted(Seconds):
    """A machine on which every run does what its script says, and takes as long."""

    def __init__(self):
        self.scripts, self.budgets = {}, {}

    def script(self, name, finding, *events, each=1.0):
        """Let a run find this, and take so long for each event."""

        def passes():
            self.now += each

        self.scripts[name] = Session(*events, finding=finding, passes=passes)

    def open_session(self, experiment, budget):
        self.budgets[experiment.name] = budget
        session = self.scripts[experiment.name]
        if isinstance(session, Exception):
            raise session
        return session


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
    passport = record(machine)
    assert [one.name for one in passport.microbenchmarks] == list(parts.RATES)
    assert [t.name for t in passport.trainings if t.seconds] == [
        *("tiny dense", "small CNN from memory", "small CNN from JPEG"),
        *("small CNN from disk", "wide dense"),
    ]
    assert passport.noise_floors[MICROBENCHMARKS] >= 1
    # The load is that while the trainings ran.
    assert passport.samples == SHORT
    assert not passport.stopped
    # The trainings get what the microbenchmarks leave.
    assert machine.budgets[MICROBENCHMARKS] < 0.6 * 60
    assert machine.budgets[TRAININGS] == pytest.approx(60 - 2 - 3)


def test_many_samples_are_thinned_to_what_a_file_may_hold(machine):
    columns = dict.fromkeys(SHORT, tuple(float(at) for at in range(1000)))
    machine.script(TRAININGS, replace(trained(), samples=columns), STEP)
    samples = record(machine).samples
    assert len(samples["t"]) == 143 <= recording.SAMPLES
    assert samples["cpu_trial"] == samples["t"]


def test_an_interrupt_keeps_what_was_measured(machine, tmp_path, capsys):
    stopped = replace(climbed(), stopped=True)
    machine.script(MICROBENCHMARKS, stopped, signal.SIGINT, STEP, STEP)
    found = record(machine)
    assert machine.scripts[MICROBENCHMARKS].stopped
    assert TRAININGS not in machine.budgets
    assert found.stopped
    # So does the command, which ends with 130.
    machine.script(MICROBENCHMARKS, stopped, signal.SIGINT, STEP)
    path = tmp_path / "b.json"
    assert cli.main(["passport", "--budget", "60", "-o", str(path)]) == cli.INTERRUPTED
    assert "stopped before it was complete" in capsys.readouterr().out
    kept = read(path, Passport)
    assert kept.stopped
    rates = [r.rate for r in found.microbenchmarks]
    assert [r.rate for r in kept.microbenchmarks] == pytest.approx(rates, rel=1e-5)


def test_what_cannot_be_measured_or_written_is_said_and_the_rest_is_kept(
    machine, tmp_path, monkeypatch
):
    machine.script(MICROBENCHMARKS, climbed(), STEP, each=70.0)
    passport = record(machine)
    assert TRAININGS not in machine.budgets
    assert passport.missed[-1] == 'The budget ended before "reference-trainings".'
    machine.script(MICROBENCHMARKS, None, RunError("It fell in /home/ada/x."))
    machine.scripts[TRAININGS] = MissingPartError("tensorflow is not installed")
    passport = record(machine)
    assert len(passport.missed) == 3
    reason = '"machine-ladder" was not measured to its end: It fell in <path>'
    assert reason in str(passport.missed)
    assert "tensorflow is not installed" in passport.missed[-1]
    assert passport.machine == MACHINE
    assert passport.checks
    machine.script(MICROBENCHMARKS, climbed(), STEP)
    full = Mock(side_effect=PerfkitError("The disk is full."))
    monkeypatch.setattr(recording, "save", full)
    with pytest.warns(UserWarning, match="The disk is full"):
        passport = perfkit.passport(tmp_path / "a.json", budget=60)
    assert passport.microbenchmarks


def test_a_machine_is_called_as_its_file(tmp_path):
    assert new_recorder(tmp_path / "lab-7.json").label == "lab-7"
    assert new_recorder().label == "this machine"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"out": "no/such/folder/a.json"}, "cannot be written"),
        ({"out": 3}, "give a name such as lab-7.json"),
        ({"out": None, "budget": 0.5}, "seconds from 1 to 3600"),
        # A file that is there is never written over.
        ({"out": "mine.json"}, "already exists"),
    ],
)
def test_what_cannot_succeed_is_refused_at_once(here, given, said):
    (here / "mine.json").write_text("mine")
    with pytest.raises(BadParameterError, match=said):
        perfkit.passport(**given)
    assert (here / "mine.json").read_text() == "mine"


def test_a_microbenchmark_has_its_limit_or_says_why_it_has_no_rate():
    rates = {one.name: one for one in recording.benchmark_rates(parts.finding())}
    assert list(rates) == list(parts.RATES)
    product = rates[parts.PRODUCT]
    assert (product.unit, product.trials) == ("FLOP", 3)
    assert product.low < product.rate < product.high
    assert (product.limit, rates["memory copy"].limit) == (5e11, None)
