import itertools
import subprocess
import sys
import threading
import time
from unittest.mock import Mock

import psutil
import pytest

from perfkit.engine import monitor as measure_monitor
from perfkit.engine.monitor import Monitor, core_speed, to_columns

# What is absent without each of these readings.
LOST = {
    "cpu_times": {"cpu_trial", "cpu_other", "cpu_perfkit"},
    "disk_io_counters": {"disk_read"},
    "virtual_memory": {"memory_used"},
}


def samples(monitor, wanted):
    found = []
    while len(found) < wanted:
        threading.Event().wait(0.02)
        found += monitor.take()
    return found


def watched(monitor, pid, wanted):
    monitor.watch(pid)
    monitor.start(0)
    return samples(monitor, wanted)


PERIOD_S = 0.05


@pytest.fixture
def monitor(monkeypatch):
    """One that takes more samples than in a run, so that tests are over soon."""
    monkeypatch.setattr(measure_monitor, "PERIOD_S", PERIOD_S)
    watching = Monitor()
    yield watching
    watching.stop()


@pytest.fixture
def burner():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield process
        process.kill()


def test_the_trials_load_is_told_from_everything_elses(monitor, burner):
    seen = watched(monitor, burner.pid, 12)[4:]
    process = psutil.Process(burner.pid)
    used = process.cpu_times()
    told = sum(s["cpu_trial"] * PERIOD_S for s in seen)
    assert 0 < told <= (used.user + used.system) * 1.5 + 0.1
    # Memory is the proportional share where there is one.
    assert 0 < seen[-1]["memory_trial"] <= process.memory_info().rss
    assert seen[-1]["memory_used"] > seen[-1]["memory_trial"]
    # Rates start with the second look, and after a reset.
    rates = measure_monitor._Rates()
    assert rates.of_all(0.0, {"disk": 100}) == {}
    assert rates.of_all(2.0, {"disk": 300}) == {"disk": 100.0}
    assert rates.of_all(3.0, {"disk": 10}) == {}
    assert rates.of_all(4.0, {"disk": 20}) == {"disk": 10.0}


def test_a_process_that_is_not_the_trial_counts_as_others(monitor, burner):
    with subprocess.Popen(["sleep", "3600"]) as idle:
        monitor.watch(idle.pid)
        monitor.start(time.perf_counter_ns() - 5_000_000_000)
        seen = samples(monitor, 12)
        idle.kill()
    assert any(s["cpu_other"] > 0 for s in seen[4:])
    assert all(s["cpu_trial"] < 0.1 for s in seen[4:])
    # The speed of a core comes with every other sample.
    assert [("core_speed" in s) for s in seen[:6]] == [True, False] * 3
    # It counts chains per second of CPU time.
    assert 20 < core_speed() < 100_000
    # Times count from the start of the run.
    assert 5 <= seen[0]["t"] < seen[1]["t"]


@pytest.mark.parametrize("broken", LOST)
@pytest.mark.fault(
    "monitor", "no /proc, open files", sees="That reading is missing; the others go on."
)
def test_a_reading_that_fails_takes_no_other(monitor, burner, monkeypatch, broken):
    refusals = itertools.cycle((OSError, AttributeError, NotImplementedError))
    monkeypatch.setattr(psutil, broken, Mock(side_effect=refusals))
    seen = watched(monitor, burner.pid, 4)[-1]
    assert not LOST[broken] & seen.keys()
    for name in LOST.keys() - {broken}:
        assert LOST[name] & seen.keys(), name


@pytest.mark.fault("monitor", "SIGKILL", sees="Only the machine's readings go on.")
def test_a_trial_that_is_gone_leaves_the_machines_readings(monitor, burner):
    watched(monitor, burner.pid, 2)
    burner.kill()
    burner.wait()
    monitor.take()
    # Two looks at the same moment of a busy machine show no rate.
    seen = set().union(*samples(monitor, 8)[2:])
    assert {"cpu_other", "memory_used"} <= seen
    assert "disk_read_trial" not in seen


@pytest.mark.fault("monitor", "fork failure", sees="The run goes on without samples.")
def test_without_a_thread_there_are_no_samples(monitor, monkeypatch):
    # It may be started and stopped twice, and ends its thread.
    for each in (monitor.start, monitor.start, lambda _: monitor.stop()):
        each(0)
    assert not monitor._thread.is_alive()
    refuse = Mock(side_effect=RuntimeError("can't start new thread"))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    without = Monitor()
    without.start(0)
    without.stop()
    assert without.take() == []


def test_a_run_of_many_hours_keeps_as_many_samples_as_a_file_holds():
    kept = to_columns([{"t": float(second)} for second in range(40_000)])["t"]
    assert (kept[:3], kept[-1]) == ((0.0, 3.0, 6.0), 39_999.0)
