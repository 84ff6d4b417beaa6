import signal
import threading

import pytest

import perfkit
from perfkit import runs
from perfkit.displays import Display
from perfkit.errors import BadParameterError, RunError
from perfkit.measure import plan


class Script:
    """A session that tells what it was told to, and can be stopped."""

    def __init__(self, *told, finding="found"):
        self.told = told
        self.finding = finding
        self.unsaved = ""
        self.stopped = self.closed = False

    def stop(self):
        self.stopped = True

    def events(self):
        try:
            for event in self.told:
                if event is signal.SIGINT:
                    signal.raise_signal(signal.SIGINT)
                    event = plan.Progress(1.0, 2.0)
                yield event
                if self.stopped:
                    return
        finally:
            self.closed = True


def test_watching_returns_what_the_session_found():
    assert runs.watch(Script(plan.Progress(1.0, 2.0)), Display()) == "found"


def test_the_first_interrupt_is_stop_and_keeps_what_was_found():
    session = Script(signal.SIGINT, *[plan.Progress(1.0, 2.0)] * 10)
    assert runs.watch(session, Display()) == "found"
    assert session.stopped


def test_the_second_interrupt_interrupts():
    session = Script(signal.SIGINT)
    session.stop = lambda: signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        runs.watch(session, Display())
    assert session.closed


def test_interrupts_work_as_before_after_a_run():
    before = signal.getsignal(signal.SIGINT)
    runs.watch(Script(signal.SIGINT), Display())
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_ends_when_its_display_breaks():
    class Broken(Display):
        def _draw(self, board):
            raise OSError("the screen is gone")

    session = Script(plan.Progress(1.0, 2.0))
    with pytest.raises(OSError, match="screen"):
        runs.watch(session, Broken())
    assert session.closed


def test_a_run_that_measured_nothing_is_an_error():
    with pytest.raises(RunError, match="nothing was measured"):
        runs.watch(Script(finding=None), Display())


def test_an_interrupt_before_there_is_anything_interrupts():
    with pytest.raises(KeyboardInterrupt, match="nothing to keep"):
        runs.watch(Script(signal.SIGINT, finding=None), Display())


def test_a_run_can_be_watched_from_another_thread():
    found = []
    session = Script(plan.Progress(1.0, 2.0))
    thread = threading.Thread(
        target=lambda: found.append(runs.watch(session, Display()))
    )
    thread.start()
    thread.join()
    assert found == ["found"]


def test_the_budget_is_sixty_seconds_unless_the_environment_says_otherwise(monkeypatch):
    monkeypatch.delenv("PERFKIT_BUDGET", raising=False)
    assert runs.default_budget() == 60
    monkeypatch.setenv("PERFKIT_BUDGET", "2.5")
    assert runs.default_budget() == 2.5


@pytest.mark.parametrize(
    "budget", [0, -1, float("nan"), float("inf"), "soon", None, True]
)
def test_a_budget_that_is_no_time_is_refused(napping, monkeypatch, budget):
    monkeypatch.setenv("PERFKIT_BUDGET", "never")
    with pytest.raises(BadParameterError, match="give the seconds to spend"):
        perfkit.run("napping", budget=budget)


def test_parameters_go_with_a_name_only(napping):
    with pytest.raises(BadParameterError, match="already has its own"):
        perfkit.run(napping(), nap_ms=3)


@pytest.mark.measures
def test_a_run_gives_a_finding_that_loads_again(napping, tmp_path, capfd):
    finding = perfkit.run("napping", budget=2, guess="awake", folder=tmp_path, batch=4)
    assert finding.parameters["batch"] == 4
    assert finding.guess == "awake"
    assert perfkit.load(finding.path).verdict == finding.verdict
    assert len(perfkit.findings(tmp_path)) == 1
    # Neither a notebook nor a terminal: nothing is shown.
    assert capfd.readouterr() == ("", "")


@pytest.mark.measures
def test_a_finding_that_cannot_be_saved_is_returned_with_a_warning(napping, tmp_path):
    (tmp_path / "taken").touch()
    with pytest.warns(UserWarning, match="could not be saved"):
        finding = perfkit.run("napping", budget=2, folder=tmp_path / "taken")
    assert finding.path is None
