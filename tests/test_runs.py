import signal

import pytest

import perfkit
from perfkit.engine import plan
from perfkit.errors import BadParameterError, RunError
from perfkit.machine.record import Gpu
from perfkit.progress import Display
from perfkit.questions import runs
from tests.engine.scripted import Session

STEP = plan.Progress(1.0, 2.0)


def test_the_first_interrupt_is_stop_and_keeps_what_was_found():
    before = signal.getsignal(signal.SIGINT)
    session = Session(signal.SIGINT, *[STEP] * 10)
    assert runs.watch(session, Display()) == "found"
    assert session.stopped
    # Interrupts work as before after a run.
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_ends_when_its_display_breaks():
    class Broken(Display):
        def _draw(self, board):
            raise OSError("the screen is gone")

    session = Session(STEP)
    with pytest.raises(OSError, match="screen"):
        runs.watch(session, Broken())
    assert session.closed


def test_a_run_that_measured_nothing_is_an_error():
    with pytest.raises(RunError, match="nothing was measured"):
        runs.watch(Session(STEP, finding=None), Display())


def test_the_budget_is_longer_with_a_gpu_unless_the_environment_says_it(monkeypatch):
    monkeypatch.delenv("PERFKIT_BUDGET", raising=False)
    for gpus, budget in (((), 60), ((Gpu(name="H200"),), 180)):
        monkeypatch.setattr(runs, "gpus_here", lambda gpus=gpus: (gpus, ""))
        assert runs.default_budget() == budget
        assert runs.default_budget(90.0) == 90
    monkeypatch.setenv("PERFKIT_BUDGET", "2.5")
    assert runs.default_budget() == 2.5


@pytest.mark.parametrize(
    "budget", [0, -1, float("nan"), float("inf"), "soon", None, True]
)
def test_a_budget_that_is_no_time_is_refused(napping, monkeypatch, budget):
    monkeypatch.setenv("PERFKIT_BUDGET", "never")
    with pytest.raises(BadParameterError, match="give the seconds to spend"):
        perfkit.run("napping", budget=budget)


def test_a_finding_that_is_not_saved_is_a_warning(napping, monkeypatch):
    session = Session(STEP)
    session.unsaved = "The finding could not be saved."
    monkeypatch.setattr(runs, "open_session", lambda *_: session)
    with pytest.warns(UserWarning, match="could not be saved"):
        assert perfkit.run("napping") == "found"
