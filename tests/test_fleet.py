"""Runs on the hosts of a Dask cluster: the files that come home, and the failures."""

import errno
import json
import math
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from unittest.mock import Mock

import distributed
import pytest

from perfkit.errors import MissingPartError, RunError
from perfkit.findings import store
from perfkit.machines import fleet
from tests.engine.trials import ON_HOSTS, ROOT
from tests.findings import made

FINDING = store.to_json(made.finding()).encode()
LONG_S, WORKER = 60, "tcp://a:1"


def host_run(path, result=b"", **future):
    """A run whose future holds a result, or raises it."""
    ended = {"done": lambda: True, "status": "finished", **future}
    future = SimpleNamespace(result=Mock(side_effect=[result]), **ended)
    return fleet.HostRun(host="a", worker=WORKER, future=future, path=path)


def test_a_file_that_came_home_is_saved_and_its_headline_shown(tmp_path):
    run = host_run(tmp_path / "machine-1.json", FINDING)
    run.update([WORKER], is_late=False)
    assert run.path.read_bytes() == FINDING
    assert str(run) == f"a: {run.path}: prefetched is the fastest way here."
    failed = host_run(tmp_path / "machine-2.json")
    step = fleet.next_step([run, failed], "passport", tmp_path)
    assert step.startswith("1 of 2 hosts sent a file; compare them with `perfkit class")
    assert "`perfkit export" in fleet.next_step([run], "run", tmp_path)
    assert fleet.next_step([failed], "run", tmp_path) == "0 of 1 hosts sent a file."


NO_PERFKIT = "no perfkit, or an older one; install perfkit"
PENDING = {"done": lambda: False}


@pytest.mark.parametrize(
    ("run", "worker", "is_late", "reason"),
    [
        ({"result": RunError("it has perfkit 0.2")}, WORKER, False, "has perfkit 0.2"),
        ({"result": ModuleNotFoundError("no 'perfkit'")}, WORKER, False, NO_PERFKIT),
        ({"result": ValueError("\x1b[2J odd")}, WORKER, False, "(ValueError: [2J odd"),
        ({"result": b'{"kind": "holiday"}'}, WORKER, False, "what it sent is not"),
        ({"status": "cancelled"}, WORKER, False, "the scheduler was lost"),
        (PENDING, "tcp://b:1", False, "its worker left the cluster"),
        (PENDING, WORKER, True, "no file arrived in time"),
    ],
)
def test_a_host_without_a_file_has_the_reason(tmp_path, run, worker, is_late, reason):
    run = host_run(tmp_path / "machine-1.json", **run)
    run.update([worker], is_late=is_late)
    assert not run.is_saved
    assert str(run).startswith("a: failed: ")
    assert reason in str(run)
    assert "\x1b" not in str(run)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault("fleet", "full disk", sees="perfkit says it can't save the file.")
def test_a_disk_that_is_full_here_is_the_reason(tmp_path, monkeypatch):
    full = Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    monkeypatch.setattr(store, "write_whole", full)
    run = host_run(tmp_path / "machine-1.json", FINDING)
    run.update([], is_late=False)
    assert "could not be saved" in str(run)
    assert not run.is_saved


def test_what_is_missing_here_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet, "_CONNECT_S", 0.1)
    for address in ("tcp://127.0.0.1:1", "scheduler", "tls://127.0.0.1:1", "x://a:1"):
        with pytest.raises(RunError, match="No Dask scheduler answers at"):
            fleet.measure(address, ["passport"], tmp_path, print)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingPartError, match="pip install distributed"):
        fleet.measure(address, ["passport"], tmp_path, print)


MINE, KILLED = fleet.__version__, "its run was ended by signal 9"
OTHER = f"it has perfkit {MINE}; install perfkit 9.9 there"


@pytest.fixture
def worker(monkeypatch):
    """The Dask worker that ``measure_here`` finds, and its task's state."""
    task = SimpleNamespace(state="executing")
    state = SimpleNamespace(tasks={"key": task})
    worker = SimpleNamespace(state=state, get_current_task=lambda: "key")
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    monkeypatch.setattr(fleet, "_PERFKIT", (sys.executable, "-c"))
    monkeypatch.setattr(fleet, "_POLL_S", 0.1)
    return task


def test_a_run_has_its_host_s_variables_and_its_file_comes_back(worker, monkeypatch):
    # Dask sets the first to 1 and leaves a number that it did not set.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MKL_NUM_THREADS", "4")
    code = "import json, os; json.dump(dict(os.environ), open('machine-1.json', 'w'))"
    variables = json.loads(fleet.measure_here(MINE, [code]))
    assert "OMP_NUM_THREADS" not in variables
    assert variables["MKL_NUM_THREADS"] == "4"


@pytest.mark.fault("fleet", "SIGKILL", sees="perfkit says which signal ended a run.")
@pytest.mark.parametrize(
    ("version", "state", "code", "reason"),
    [
        (MINE, "executing", "import os; os.kill(os.getpid(), 9)", KILLED),
        (MINE, "executing", "import sys; sys.exit('W0\\nperfkit: No.')", "No."),
        (MINE, "cancelled", f"import time; time.sleep({LONG_S})", KILLED),
        ("9.9", "executing", "raise SystemExit", OTHER),
    ],
    ids=["killed", "refused", "nobody waits", "another version"],
)
def test_a_run_without_a_file_has_the_reason(worker, version, state, code, reason):
    worker.state = state
    with pytest.raises(RunError) as caught:
        fleet.measure_here(version, [code])
    assert str(caught.value) == reason


def start(folder, *command):
    """Start a module of Python as on a host with a folder of its own."""
    # Runs wait for a lock in the folder for temporary files.
    variables = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ON_HOSTS}", "TMPDIR": str(folder)}
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
    line = [sys.executable, "-m", *command]
    return subprocess.Popen(line, cwd=folder, env=os.environ | variables, **pipes)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A real scheduler, and the processes of a worker on each of three hosts."""
    folder = tmp_path_factory.mktemp("scheduler")
    file = str(folder / "scheduler.json")
    shared = ["--scheduler-file", file, "--no-dashboard", "--host"]
    scheduler = ["dask", "scheduler", "--port", "0", *shared, "127.0.0.1"]
    processes = {"scheduler": start(folder, *scheduler)}
    worker = ["dask", "worker", "--no-nanny", "--nthreads", "1", *shared]
    for host in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
        processes[host] = start(tmp_path_factory.mktemp(host), *worker, host)
    with distributed.Client(scheduler_file=file, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=LONG_S)
        address = client.scheduler_info()["address"]
    yield SimpleNamespace(address=address, processes=processes)
    for process in processes.values():
        process.kill()
        process.wait()


@pytest.mark.fault("fleet", "kernel killed", sees="The runs on all machines end, too.")
def test_where_who_asks_is_killed_the_runs_end(cluster, tmp_path):
    line = f"fleet {cluster.address} run napping --dreams --budget {LONG_S} --bed"
    asking = start(tmp_path, "perfkit", *line.split(), str(tmp_path))
    asleep, end = tmp_path / "asleep", time.monotonic() + LONG_S
    while not asleep.exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert asleep.exists()
    asking.kill()
    asking.wait()
    # Each run touches the file twenty times a second.
    while asleep.exists() and time.monotonic() < end:
        asleep.unlink()
        time.sleep(1)
    assert not asleep.exists()


@pytest.mark.fault(
    "fleet", "SIGKILL", sees="perfkit reports the lost worker and gets the other files."
)
@pytest.mark.fault(
    "fleet", "SIGSTOP", sees="perfkit reports the late worker and gets the other files."
)
def test_of_one_killed_and_one_that_stands_still_the_other_comes_home(
    cluster, tmp_path, monkeypatch
):
    clock = SimpleNamespace(monotonic=lambda: now[-1], sleep=time.sleep)
    monkeypatch.setattr(fleet, "time", clock)
    now = [0.0]

    def strike(line):
        if line.startswith("127.0.0.1: "):
            # Its file is home, and the time of the others is up.
            now.append(math.inf)
        cluster.processes["127.0.0.2"].send_signal(signal.SIGKILL)
        cluster.processes["127.0.0.3"].send_signal(signal.SIGSTOP)

    say = Mock(side_effect=strike)
    command = ["run", "napping", "--budget=2"]
    runs = fleet.measure(cluster.address, command, tmp_path / "new", say, 2.0)
    assert store.load(runs[0].path).timings
    assert str(runs[1]).startswith("127.0.0.2: failed: its worker left the cluster")
    assert str(runs[2]).startswith("127.0.0.3: failed: no file arrived in time")
    assert say.call_count == 4
