import subprocess
import sys
import threading

import psutil
import pytest

from perfkit.measure import monitor as measure_monitor
from perfkit.measure.monitor import Monitor, core_speed

_BURN = "while True: pass"


def samples(monitor, wanted):
    """Take samples until there are as many as wanted."""
    found = []
    while len(found) < wanted:
        threading.Event().wait(0.05)
        found += monitor.take()
    return found


@pytest.fixture
def monitor():
    watching = Monitor()
    yield watching
    watching.stop()


@pytest.fixture
def burner():
    with subprocess.Popen([sys.executable, "-c", _BURN]) as process:
        yield process
        process.kill()


def test_the_trials_load_is_told_from_everything_elses(monitor, burner):
    monitor.watch(burner.pid)
    monitor.start(0)
    seen = samples(monitor, 12)[4:]
    used = psutil.Process(burner.pid).cpu_times()
    told = sum(s["cpu_trial"] * 0.2 for s in seen)
    assert 0 < told <= (used.user + used.system) * 1.5 + 0.1


def test_a_process_that_is_not_the_trial_counts_as_others(monitor, burner):
    with subprocess.Popen(["sleep", "3600"]) as idle:
        monitor.watch(idle.pid)
        monitor.start(0)
        seen = samples(monitor, 12)[4:]
        idle.kill()
    assert any(s["cpu_other"] > 0 for s in seen)
    assert all(s["cpu_trial"] < 0.1 for s in seen)


def test_memory_is_the_proportional_share_where_there_is_one(monitor, burner):
    monitor.watch(burner.pid)
    monitor.start(0)
    seen = samples(monitor, 3)[-1]
    rss = psutil.Process(burner.pid).memory_info().rss
    assert 0 < seen["memory_trial"] <= rss
    assert seen["memory_used"] > seen["memory_trial"]


def test_the_speed_of_a_core_comes_with_every_other_sample(monitor):
    monitor.start(0)
    seen = samples(monitor, 6)
    assert [("core_speed" in s) for s in seen[:6]] == [True, False] * 3


def test_the_speed_of_a_core_counts_chains_per_second_of_cpu_time():
    assert 20 < core_speed() < 100_000


def test_times_count_from_the_start_of_the_run(monitor):
    import time

    monitor.start(time.perf_counter_ns() - 5_000_000_000)
    first, second = samples(monitor, 2)[:2]
    assert 5 <= first["t"] < second["t"]


@pytest.mark.parametrize("broken", ["cpu_times", "disk_io_counters", "virtual_memory"])
@pytest.mark.fault(
    "monitor",
    "no /proc",
    sees="A reading that fails is absent, and takes no other with it.",
)
@pytest.mark.fault(
    "monitor",
    "open files",
    sees="A reading that fails is absent, and takes no other with it.",
)
def test_a_reading_that_fails_is_absent_and_takes_no_other_with_it(
    monitor, burner, monkeypatch, broken
):
    def refuse(*_args, **_kwargs):
        raise OSError("not on this system")

    monkeypatch.setattr(psutil, broken, refuse)
    monitor.watch(burner.pid)
    monitor.start(0)
    seen = samples(monitor, 4)[-1]
    lost = {
        "cpu_times": {"cpu_trial", "cpu_other", "cpu_perfkit"},
        "disk_io_counters": {"disk_read", "disk_write"},
        "virtual_memory": {"memory_used"},
    }
    assert not lost[broken] & seen.keys()
    for name, readings in lost.items():
        if name != broken:
            assert readings & seen.keys(), name


@pytest.mark.fault(
    "monitor",
    "SIGKILL",
    sees="The readings of the machine go on; those of the trial are absent.",
)
def test_a_trial_that_is_gone_leaves_the_machines_readings(monitor, burner):
    monitor.watch(burner.pid)
    monitor.start(0)
    samples(monitor, 2)
    burner.kill()
    burner.wait()
    monitor.take()
    # Two looks at the same moment of a busy machine show no rate.
    seen = set().union(*samples(monitor, 8)[2:])
    assert {"cpu_other", "memory_used"} <= seen
    assert "disk_read_trial" not in seen


@pytest.mark.fault("monitor", "no /proc", sees="The run goes on without its readings.")
def test_where_no_process_is_told_of_a_run_has_no_samples_of_it(
    monitor, monkeypatch, tmp_path
):
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "none"), raising=False)
    monitor.watch(1)
    monitor.start(0)
    seen = samples(monitor, 3)[-1]
    assert "t" in seen
    assert not {"cpu_trial", "cpu_other", "memory_trial"} & seen.keys()


@pytest.mark.fault("monitor", "fork failure", sees="The run goes on without samples.")
def test_without_a_thread_there_are_no_samples(monitor, monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monitor.start(0)
    monitor.stop()
    assert monitor.take() == []


def test_stop_may_be_called_twice_and_ends_the_thread(monitor):
    monitor.start(0)
    monitor.start(0)
    monitor.stop()
    monitor.stop()
    assert not monitor._thread.is_alive()
    monitor.take()
    assert monitor.take() == []


def test_rates_start_with_the_second_look_and_after_a_reset():
    rates = measure_monitor._Rates()
    assert rates.of_all(0.0, {"disk": 100}) == {}
    assert rates.of_all(2.0, {"disk": 300}) == {"disk": 100.0}
    assert rates.of_all(3.0, {"disk": 10}) == {}
    assert rates.of_all(4.0, {"disk": 20}) == {"disk": 10.0}


def test_a_late_sample_is_followed_by_a_whole_period(monkeypatch):
    # The clock's readings: each sample begins, takes 10 ms, and the third comes late.
    now = iter((0.0, 0.01, 0.2, 0.21, 0.58, 0.59, 0.79, 0.8))
    monkeypatch.setattr(measure_monitor.time, "perf_counter", lambda: next(now))
    watching, waits = Monitor(), []
    monkeypatch.setattr(watching, "_sample", dict)

    def wait(seconds):
        waits.append(round(seconds, 3))
        if len(waits) == 4:
            watching._stop.set()

    monkeypatch.setattr(watching._stop, "wait", wait)
    watching._sample_until_stopped()
    assert waits == [0.19] * 4
