"""Real loads in real processes: none may stay when it should be gone."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import psutil
import pytest

from perfkit.engine.monitor import Monitor
from perfkit.engine.tick import READY, Note
from perfkit.engine.trial import Limits
from perfkit.errors import RunError
from perfkit.questions.contention import loads
from perfkit.questions.contention.loads import CPU, DISK, LOADS, MEMORY, Load
from tests.engine.trials import are_gone, launched, until_ticks


def processes_of(working):
    return [psutil.Process(each.pid) for each in working]


@pytest.fixture
def file_to_read(tmp_path, monkeypatch):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(3_000_000))
    monkeypatch.setattr(loads.benchmark, "files", lambda folder: (str(path),))


@pytest.mark.parametrize("name", [CPU, MEMORY, DISK])
def test_a_load_works_while_the_block_runs_and_not_after_it(name, file_to_read, capfd):
    with loads.at_work(LOADS[name], 1) as working:
        (process,) = processes_of(working)
        before = sum(process.cpu_times()[:2])
        while sum(process.cpu_times()[:2]) <= before:
            loads.check(working)
    assert are_gone([process])
    assert capfd.readouterr().err == ""


def test_a_cpu_load_has_its_processes_until_the_block_raises(file_to_read):
    with loads.at_work(LOADS[CPU], 3) as working:
        assert len({each.pid for each in working}) == 3
    with loads.at_work(LOADS[DISK], 3) as working:
        assert len(working) == 1
    working = loads.at_work(LOADS[CPU], 1)
    running = processes_of(working.__enter__())
    error = ZeroDivisionError("in the training")
    assert not working.__exit__(ZeroDivisionError, error, None)
    assert are_gone(running)


def test_the_time_limit_ends_a_load_even_if_it_stood_still():
    with loads.at_work(LOADS[CPU], 1, limit=0.3) as working:
        (process,) = processes_of(working)
        process.suspend()
        while "SigPnd" not in _pending(process.pid):
            pass
        process.resume()
        assert are_gone([process])
        with pytest.raises(RunError, match="ended too early"):
            loads.check(working)


def _pending(pid):
    """The alarm is waiting once its bit is set among the pending signals."""
    with open(f"/proc/{pid}/status") as status:
        masks = [line.split() for line in status if "Pnd" in line]
    bit = 1 << (signal.SIGALRM - 1)
    return {"SigPnd" for _, mask in masks if int(mask, 16) & bit}


def test_a_load_that_cannot_start_says_so_and_names_nothing():
    broken = Load("a strange load", "no such work", "It cannot start.")
    with pytest.raises(RunError, match="ended too early") as told:
        loads.at_work(broken).__enter__()
    assert "strange" not in str(told.value)


_TRIAL = """
    import sys, time
    from perfkit.questions.contention import loads
    with loads.at_work(loads.LOADS[loads.CPU], 2) as working:
        print(*(each.pid for each in working), flush=True)
        time.sleep(3600)
"""


@pytest.mark.parametrize("frozen", [False, True], ids=["at work", "standing still"])
def test_no_load_outlives_a_process_that_is_killed(frozen):
    command = [sys.executable, "-c", textwrap.dedent(_TRIAL)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, start_new_session=True
    ) as trial:
        running = [psutil.Process(int(pid)) for pid in trial.stdout.readline().split()]
        if frozen:
            os.killpg(trial.pid, signal.SIGSTOP)
            while any(p.status() != psutil.STATUS_STOPPED for p in running):
                pass
        # This one alone: nobody is there to kill the rest of its group.
        trial.kill()
        assert len(running) == 2
        assert are_gone(running)


@pytest.fixture
def trial():
    def beside_burners():
        with loads.at_work(LOADS[CPU], 2) as working:
            yield Note("pids", [each.pid for each in working])
            yield READY
            while True:
                threading.Event().wait(0.02)
                loads.check(working)
                yield 1

    running = launched().start(beside_burners, 1, Limits())
    (pids,) = [m[2] for m in until_ticks(running) if m[0] == "note"]
    yield running, [psutil.Process(pid) for pid in pids]
    running.kill("stopped", "the test is over")


def test_a_load_stands_still_and_goes_on_with_its_trial(trial):
    running, burners = trial
    running.freeze()
    while any(p.status() != psutil.STATUS_STOPPED for p in burners):
        pass
    before = [p.cpu_times() for p in burners]
    running.poll(0.1)
    assert [p.cpu_times() for p in burners] == before
    running.resume()
    while any(p.cpu_times() == b for p, b in zip(burners, before, strict=True)):
        assert running.poll(0.1) is not None
        assert running.outcome is None


@pytest.mark.parametrize("frozen", [False, True], ids=["at work", "standing still"])
def test_a_load_ends_with_its_trial(trial, frozen):
    running, burners = trial
    if frozen:
        running.freeze()
    running.kill("stopped", "was stopped")
    assert are_gone(burners)


def test_the_monitor_counts_a_load_as_other_programs(trial):
    running, _ = trial
    monitor = Monitor()
    try:
        monitor.watch(running.pid)
        monitor.start(0)
        seen = []
        while len(seen) < 12:
            running.poll(0.1)
            seen += monitor.take()
    finally:
        monitor.stop()
    assert len(psutil.Process(running.pid).children()) == 2
    # The trial itself only waits; what its two burners take is not its own.
    assert all(s["cpu_trial"] < 0.2 for s in seen[6:])
    assert any(s["cpu_other"] > 0.2 for s in seen[6:])
