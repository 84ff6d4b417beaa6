import signal

import pytest

from perfkit import cli
from perfkit.fleet import opening
from perfkit.fleet.asking import Asking, Keeper
from perfkit.fleet.outcome import Broken, Home
from tests.fleet import scripted


@pytest.fixture
def fleet(monkeypatch, tmp_path):
    """Two machines that do what a test writes down, and what was asked of them."""
    fleet = scripted.Fleet({}, scripted.members(2))
    fleet.asked = []

    def opened(task, where, *, folder, each, tls):
        fleet.asked.append((task, where, folder, each, tls))
        return Asking(fleet, task, Keeper(tmp_path), clock=fleet.clock)

    monkeypatch.setattr(opening, "open_asking", opened)
    monkeypatch.setenv("COLUMNS", "100")  # whatever runs the tests
    return fleet


@pytest.fixture
def interruptible():
    """A shell that starts tests in the background has them ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def broken(key):
    return [(1, Broken(key, "It has no perfkit."))]


def test_one_that_sends_something_is_enough(fleet, capsys):
    fleet.scripts = {"w1": scripted.run("w1"), "w2": broken("w2")}
    line = "fleet tcp://a:1 run data-pipeline --batch 16 --budget 60 --each worker"
    assert cli.main(line.split()) == 0
    said = capsys.readouterr()
    assert "prefetched is the fastest way here." in said.out
    assert "It has no perfkit." in said.out
    assert "1 of 2 sent what they measured" in said.out
    assert "host 2: failed: It has no perfkit." in said.err
    ((task, where, folder, each, tls),) = fleet.asked
    assert (task.experiment, task.parameters["batch"], task.budget) == (
        "data-pipeline",
        16,
        60.0,
    )
    assert (where, folder, each, tls) == ("tcp://a:1", None, "worker", None)


def test_the_code_tells_that_nothing_came_home(fleet, capsys):
    fleet.scripts = {"w1": broken("w1"), "w2": broken("w2")}
    assert cli.main(["fleet", "passport"]) == 1
    assert "0 of 2 sent" in capsys.readouterr().out
    assert fleet.asked[0][0].what == "passport"


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_stops_all_and_keeps_what_comes_home(fleet, capsys):
    fleet.scripts = {"w1": [(3, Home("w1", scripted.sent(how="stopped")))]}
    heard = fleet.heard

    def interrupted(timeout):
        if fleet.now == 1:
            signal.raise_signal(signal.SIGINT)
        return heard(timeout)

    fleet.heard = interrupted
    assert cli.main(["fleet", "run", "data-pipeline"]) == 130
    said = capsys.readouterr().out
    assert "It was stopped. What it measured by then" in said
    assert "Nothing came home after Stop." in said
