"""Runs on the hosts of a Dask cluster: the files that come home, and the failures."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import distributed
import pytest

from perfkit import cli, fleet
from perfkit.errors import BadParameterError, MissingPartError, RunError
from perfkit.findings import store
from tests.findings import made

ROOT = Path(__file__).parents[1]
ON_HOSTS = f"{ROOT}{os.pathsep}{ROOT / 'tests/guilty/on_hosts'}"
FINDING = store.to_json(made.finding()).encode()
LONG_S = 60


def host_run(path, result=b"", **future):
    """A run whose future holds a result, or raises it."""
    raises = {
        "side_effect" if isinstance(result, Exception) else "return_value": result
    }
    known = {"done": lambda: True, "status": "finished", "result": Mock(**raises)}
    future = SimpleNamespace(**known | future)
    return fleet.HostRun(host="a", worker="tcp://a:1", future=future, path=path)


def test_a_file_that_came_home_is_saved_and_its_headline_shown(tmp_path):
    run = host_run(tmp_path / "machine-1.json", FINDING)
    run.update(["tcp://a:1"], is_late=False)
    assert run.path.read_bytes() == FINDING
    assert str(run) == f"a: {run.path}: prefetched is the fastest way here."
    failed = host_run(tmp_path / "machine-2.json", RunError("no"))
    failed.update([], is_late=False)
    step = fleet.next_step([run, failed], "passport", tmp_path)
    assert step.startswith("1 of 2 hosts sent a file; compare them with `perfkit class")
    assert "`perfkit export" in fleet.next_step([run], "run", tmp_path)
    assert fleet.next_step([failed], "run", tmp_path) == "0 of 1 hosts sent a file."


HERE = ["tcp://a:1"]
PENDING = {"done": lambda: False}
GONE = ModuleNotFoundError("No module named 'perfkit.fleet'")
OLDER = AttributeError("module 'perfkit.fleet' has no attribute 'measure_here'")


@pytest.mark.parametrize(
    ("run", "workers", "is_late", "reason"),
    [
        ({"result": RunError("it has perfkit 0.2")}, HERE, False, "has perfkit 0.2"),
        ({"result": GONE}, HERE, False, "no perfkit, or an older one; install perfkit"),
        ({"result": OLDER}, HERE, False, "no perfkit, or an older one; install"),
        ({"result": ValueError("\x1b[2J odd")}, HERE, False,
         "its worker failed (ValueError: [2J odd"),
        ({"result": b'{"kind": "holiday"}'}, HERE, False, "what it sent is not"),
        ({"result": None}, HERE, False, "its worker failed (TypeError"),
        ({"status": "cancelled"}, HERE, False, "the scheduler was lost"),
        (PENDING, ["tcp://b:1"], False, "its worker left the cluster"),
        (PENDING, HERE, True, "nothing came home in time"),
    ],
)  # fmt: skip
def test_a_host_that_sends_no_file_has_the_reason(
    tmp_path, run, workers, is_late, reason
):
    run = host_run(tmp_path / "machine-1.json", **run)
    run.update(workers, is_late=is_late)
    assert not run.is_saved
    assert str(run).startswith("a: failed: ")
    assert reason in str(run)
    assert "\x1b" not in str(run)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault("fleet", "full disk", sees="That the file could not be saved here.")
def test_a_disk_that_is_full_here_is_the_reason(tmp_path, monkeypatch):
    full = Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    monkeypatch.setattr(store, "write_whole", full)
    run = host_run(tmp_path / "machine-1.json", FINDING)
    run.update([], is_late=False)
    assert "could not be saved" in str(run)
    assert not run.is_saved


def test_what_is_missing_here_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet, "_CONNECT_S", 0.5)
    for address in ("tcp://127.0.0.1:1", "scheduler", "tls://127.0.0.1:1", "x://a:1"):
        with pytest.raises(RunError, match="No Dask scheduler answers at"):
            fleet.measure(address, ["passport"], tmp_path, print)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingPartError, match="pip install distributed"):
        fleet.measure(address, ["passport"], tmp_path, print)
    (tmp_path / "a.json").touch()
    with pytest.raises(BadParameterError, match="give a new folder"):
        fleet.new_folder(str(tmp_path))


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


def test_a_run_has_the_host_s_own_variables_and_its_file_is_returned(
    worker, monkeypatch
):
    # Dask sets the first to 1 and leaves a number that it did not set.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MKL_NUM_THREADS", "4")
    code = "import json, os; json.dump(dict(os.environ), open('machine-1.json', 'w'))"
    variables = json.loads(fleet.measure_here(fleet.__version__, [code]))
    assert "OMP_NUM_THREADS" not in variables
    assert variables["MKL_NUM_THREADS"] == "4"


@pytest.mark.fault("fleet", "SIGKILL", sees="By which signal its run was ended.")
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os.kill(os.getpid(), 9)", "its run was ended by signal 9"),
        ("import sys; sys.exit('W0\\nperfkit: No.')", "No."),
        ("raise SystemExit(1)", "its run ended with code 1"),
    ],
)
def test_a_run_without_a_file_has_the_reason(worker, code, reason):
    with pytest.raises(RunError) as caught:
        fleet.measure_here(fleet.__version__, [code])
    assert str(caught.value) == reason


def test_a_run_that_nobody_waits_for_is_ended_and_another_version_not_begun(worker):
    worker.state = "cancelled"
    began = time.monotonic()
    with pytest.raises(RunError):
        fleet.measure_here(fleet.__version__, [f"import time; time.sleep({LONG_S})"])
    assert time.monotonic() - began < LONG_S / 2
    with pytest.raises(RunError, match=r"install perfkit 9\.9 there"):
        fleet.measure_here("9.9", ["raise SystemExit"])


def test_the_command_passes_on_what_was_typed(napping, here, monkeypatch, capsys):
    run = fleet.HostRun(host="a", worker="", future=None, path=here, is_saved=True)
    measure = Mock(return_value=[run])
    monkeypatch.setattr(fleet, "measure", measure)
    line = "fleet tcp://a:1 run napping --nap-ms 2 --no-dreams --budget 9 --out new"
    assert cli.main(line.split()) == 0
    address, command, folder, _, budget = measure.call_args.args
    assert (address, folder, budget) == ("tcp://a:1", Path("new"), 9.0)
    assert command == ["run", "napping", "--nap-ms=2.0", "--no-dreams", "--budget=9"]
    assert "1 of 1 hosts sent a file" in capsys.readouterr().out
    run.is_saved = False
    assert cli.main(["fleet", "tcp://a:1", "passport"]) == 1
    assert measure.call_args.args[1] == ["passport"]
    measure.side_effect = KeyboardInterrupt
    assert cli.main(line.split()) == 130


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A real scheduler, and the processes of a worker on each of three hosts."""
    folder = tmp_path_factory.mktemp("hosts")
    file = folder / "scheduler.json"
    shared = ["--scheduler-file", str(file), "--no-dashboard", "--host"]
    lines = {"scheduler": ["scheduler", "--port", "0", *shared, "127.0.0.1"]}
    for host in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
        lines[host] = ["worker", "--no-nanny", "--nthreads", "1", *shared, host]
    processes = {}
    for host, line in lines.items():
        # Each host has a lock of its own for measuring.
        (folder / host).mkdir()
        variables = {"PYTHONPATH": ON_HOSTS, "TMPDIR": str(folder / host)}
        processes[host] = subprocess.Popen(
            [sys.executable, "-m", "dask", *line],
            cwd=folder / host,
            env=os.environ | variables,
            stderr=subprocess.DEVNULL,
        )
    while not file.exists():
        time.sleep(0.1)
    address = json.loads(file.read_text())["address"]
    with distributed.Client(address, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=LONG_S)
    yield SimpleNamespace(address=address, processes=processes)
    for process in processes.values():
        process.kill()
        process.wait()


@pytest.mark.fault("fleet", "kernel killed", sees="Nothing: the runs end as well.")
def test_where_who_asks_is_killed_the_runs_end(cluster, tmp_path):
    line = f"fleet {cluster.address} run napping --dreams --bed {tmp_path}"
    asking = subprocess.Popen(
        [sys.executable, "-m", "perfkit", *line.split(), "--budget", str(LONG_S)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": ON_HOSTS},
        stdout=subprocess.DEVNULL,
    )
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


@pytest.mark.fault("fleet", "SIGKILL", sees="It has left; the other files come home.")
@pytest.mark.fault("fleet", "SIGSTOP", sees="It sent nothing in time; the others did.")
def test_of_one_killed_and_one_that_stands_still_the_other_comes_home(
    cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(fleet, "_BEYOND_BUDGET_S", 30.0)
    lines = []

    def say(line):
        if not lines:
            cluster.processes["127.0.0.2"].send_signal(signal.SIGKILL)
            cluster.processes["127.0.0.3"].send_signal(signal.SIGSTOP)
        lines.append(line)

    command = ["run", "napping", "--budget=2"]
    runs = fleet.measure(cluster.address, command, tmp_path / "new", say, 2.0)
    assert [run.host for run in runs] == [f"127.0.0.{n}" for n in (1, 2, 3)]
    assert [run.is_saved for run in runs] == [True, False, False]
    assert store.load_finding(runs[0].path).timings
    assert "left the cluster" in runs[1].summary
    assert "nothing came home in time" in runs[2].summary
    assert len(lines) == 4
