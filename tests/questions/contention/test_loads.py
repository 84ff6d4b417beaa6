"""Real loads in real processes: none may stay when it should be gone."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading

import psutil
import pytest

from perfkit.engine.trial import READY, Limits, Note
from perfkit.questions.contention import loads
from perfkit.questions.contention.loads import CPU, DISK, LOADS, MEMORY
from tests.engine.trials import are_gone, launched, until_ticks


@pytest.mark.parametrize("name", [CPU, MEMORY, DISK])
def test_a_load_works_until_the_block_raises(name, tmp_path, monkeypatch, capfd):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(3_000_000))
    monkeypatch.setattr(loads.benchmark, "files", lambda folder: (str(path),))
    with contextlib.suppress(ZeroDivisionError), loads.at_work(LOADS[name], 1) as work:
        process = psutil.Process(work[0].pid)
        before = sum(process.cpu_times()[:2])
        while sum(process.cpu_times()[:2]) <= before:
            loads.check(work)
        raise ZeroDivisionError("in the training")
    assert are_gone([process])
    assert capfd.readouterr().err == ""


_TRIAL = """
    import sys, time
    from perfkit.questions.contention import loads
    with loads.at_work(loads.LOADS[loads.CPU], 2) as working:
        print(*(each.pid for each in working), flush=True)
        time.sleep(3600)
"""


def test_no_load_outlives_a_process_that_is_killed_while_it_stands_still():
    command = [sys.executable, "-c", textwrap.dedent(_TRIAL)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, start_new_session=True
    ) as trial:
        running = [psutil.Process(int(pid)) for pid in trial.stdout.readline().split()]
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


def test_a_load_stands_still_goes_on_and_ends_with_its_trial(trial):
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
    running.freeze()
    running.kill("stopped", "was stopped")
    assert are_gone(burners)
