"""The process that measures: it ends when it should, and nothing of it is left."""

import dataclasses
import json
import queue
import threading
from pathlib import Path

import pytest

from perfkit.errors import RunError
from perfkit.fleet import process
from perfkit.fleet.process import Task, measure
from perfkit.fleet.run import Here
from perfkit.machines.recording import Making
from perfkit.progress import Board
from tests.fleet.scripted import left

LONG_S = 60
TASK = Task(experiment="counting", budget=1.0, seconds=LONG_S)


@pytest.fixture(autouse=True)
def a_host(tmp_path, monkeypatch):
    """One with the experiment of the tests, and a lock of its own."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "on_hosts"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def done(wanted=lambda: True, tell=lambda doing: None, **fields):
    task = dataclasses.asdict(dataclasses.replace(TASK, **fields))
    return json.loads(measure(task, tell, wanted))


def test_a_measurement_comes_home_whole_and_nothing_is_left(tmp_path):
    # As it is done on this machine, without a cluster.
    here, news, told = Here(), queue.SimpleQueue(), []
    here.begin(here.members[0], TASK, news.put)
    while isinstance(last := news.get(timeout=LONG_S), dict):
        told.append(last)
    here.close()
    found = json.loads(last)
    assert (found["how"], found["why"]) == ("completed", "")
    assert json.loads(found["document"])["experiment"] == "counting"
    assert any(doing.get("share", 0) > 0 for doing in told)
    assert left(tmp_path) == []


def test_of_a_passport_its_budget_tells_how_much_is_done(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    teller = process._Teller()
    teller.making = Making(60.0, "lab 7", clock=lambda: 15.0)
    teller.making._zero = 0.0
    # The first of its runs is over.
    teller.show(Board(doing="Starting TensorFlow", over=True))
    told = {"doing": "Starting TensorFlow", "share": 0.25, "left": "45 s left"}
    assert json.loads((tmp_path / "told.json").read_text()) == told


@pytest.mark.parametrize(
    ("wanted", "seconds", "said"),
    [
        (lambda: True, 2.0, "It was stopped when its time was up."),
        (lambda: False, LONG_S, "Nothing had been measured when it was stopped."),
    ],
)
def test_one_that_hangs_is_stopped_or_its_time_is_up(tmp_path, wanted, seconds, said):
    found = done(wanted, parameters={"fault": "hangs"}, seconds=seconds)
    assert (found["how"], found["document"]) == ("stopped", "")
    assert found["why"].startswith(said)
    assert left(tmp_path) == []


@pytest.mark.fault("fleet", "SIGKILL", sees="By which signal its run has ended.")
def test_one_that_dies_is_told_with_the_signal(tmp_path):
    found = done(parameters={"fault": "dies"})
    assert found["how"] == "failed"
    assert "Its run ended with signal 9" in found["why"]


def test_stop_keeps_what_was_measured():
    asked = threading.Event()

    def tell(doing):
        if doing.get("share", 0) > 0:
            asked.set()

    found = done(lambda: not asked.is_set(), tell, budget=LONG_S)
    assert found["how"] == "stopped"
    assert json.loads(found["document"])["stopped"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"experiment": "conting"}, "'conting' is no experiment"),
        ({"experiment": "data-pipeline"}, "tensorflow, which is not installed"),
    ],
)
def test_what_a_host_lacks_is_said_in_a_sentence(fields, said):
    found = done(**fields)
    assert (found["how"], found["document"]) == ("failed", "")
    assert said in found["why"]


def test_another_tensorflow_than_that_of_the_asking_machine_is_refused(monkeypatch):
    monkeypatch.setattr(process, "tensorflow_here", lambda: "2.21.0")
    task = Task(experiment="data-pipeline", budget=1.0, tensorflow="2.20.0")
    with pytest.raises(RunError, match=r"2.21.0 and the asking machine has 2.20.0"):
        process._run(task, None)
