"""The process that measures: it ends when it should, and nothing of it is left."""

import dataclasses
import json
import queue
import threading
from pathlib import Path

import psutil
import pytest

from perfkit.fleet.process import Task, measure
from perfkit.fleet.run import Here

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


def measuring(folder):
    """What was started with this folder for temporary files, and still is there."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == str(folder):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_a_measurement_comes_home_whole_and_nothing_is_left(tmp_path):
    told = []
    found = done(tell=told.append)
    assert (found["how"], found["why"]) == ("completed", "")
    assert json.loads(found["document"])["experiment"] == "counting"
    assert any(doing.get("share", 0) > 0 for doing in told)
    _, alive = psutil.wait_procs(measuring(tmp_path), timeout=LONG_S)
    assert alive == []


def test_one_that_hangs_is_stopped_when_its_time_is_up(tmp_path):
    found = done(parameters={"fault": "hangs"}, seconds=2.0)
    assert found["how"] == "stopped"
    assert found["why"].startswith("It was stopped when its time was up.")
    _, alive = psutil.wait_procs(measuring(tmp_path), timeout=LONG_S)
    assert alive == []


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


def test_without_a_cluster_the_same_is_done_on_this_machine():
    here, news = Here(), queue.SimpleQueue()
    here.begin(here.members[0], TASK, news.put)
    while isinstance(told := news.get(timeout=LONG_S), dict):
        pass
    here.close()
    assert json.loads(told)["how"] == "completed"
