"""A real scheduler and real workers, of which some die or fall silent."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from distributed import Client

from perfkit.errors import BadParameterError
from perfkit.findings.store import load_finding
from perfkit.fleet import run
from perfkit.fleet.cluster import Cluster, members, why
from perfkit.fleet.process import Task

HERE = Path(__file__).parent
LONG_S = 60
WORKERS = {
    "tcp://10.0.0.10:5001": {"host": "10.0.0.10", "name": "gpu-0"},
    "tcp://10.0.0.10:5002": {"host": "10.0.0.10", "name": "tcp://10.0.0.10:5002"},
    "tcp://10.0.0.9:5001": {"host": "10.0.0.9", "name": 3},
    "tls://[fe80::1]:5001": {"host": "fe80::1", "name": "far"},
}
TASK = Task(experiment="counting", budget=6.0)
LONG = Task(experiment="counting", budget=LONG_S)


def test_one_worker_speaks_for_its_host():
    assert [m.name for m in members(WORKERS)] == ["fe80::1", "10.0.0.9", "10.0.0.10"]
    assert members(WORKERS)[2].key == "tcp://10.0.0.10:5001"


def test_each_worker_is_told_apart_where_each_is_asked():
    names = [m.name for m in members(WORKERS, each="worker")]
    assert names == ["fe80::1 far", "10.0.0.9 3", "10.0.0.10 gpu-0", "10.0.0.10 5002"]


def test_what_a_worker_calls_itself_cannot_disturb_a_terminal():
    sly = {"tcp://10.0.0.1:1": {"host": "10.0.0.1", "name": "\x1b[2Jx"}}
    assert members(sly, each="worker")[0].name == "10.0.0.1 [2Jx"


def test_another_word_is_refused():
    with pytest.raises(BadParameterError, match="one of host, worker"):
        members(WORKERS, each="core")


def test_a_worker_without_perfkit_is_told_so():
    error = ModuleNotFoundError("No module named 'perfkit'")
    assert why(error).startswith("It has no perfkit, or an older one")


@pytest.fixture
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hosts")
    process = subprocess.Popen(
        [sys.executable, str(HERE / "cluster_process.py"), str(folder), "2"],
        env=os.environ | {"PYTHONPATH": str(HERE / "on_hosts")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(folder / "log.txt").open("wb"),
        text=True,
    )
    scheduler, address = process.stdout.readline().split()
    lines = [process.stdout.readline().split() for _ in range(8)]
    pids = {name: int(pid) for pid, name in lines}
    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(8, timeout=LONG_S)
    yield SimpleNamespace(
        address=address, scheduler=int(scheduler), pids=pids, folder=folder
    )
    process.communicate("")
    # Whatever became of the asking machine, the scheduler and the workers.
    _, alive = psutil.wait_procs(measuring(folder), timeout=LONG_S)
    assert alive == []


def measuring(folder):
    """What measures on the hosts of this cluster."""
    found = []
    for process in psutil.process_iter():
        try:
            line, where = process.cmdline(), process.environ().get("TMPDIR", "")
        except psutil.Error:
            continue
        if where.startswith(str(folder)) and "perfkit.fleet.process" in line:
            found.append(process)
    return found


def test_one_worker_is_asked_on_each_host_by_a_client_of_its_own(cluster):
    four = Cluster(cluster.address)
    assert [m.name for m in four.members] == [f"127.0.0.{n}" for n in (1, 2, 3, 4)]
    assert four._client.status == "running"
    four.close()
    assert four._client.status == "closed"


def test_one_is_killed_and_one_is_cut_off_and_six_findings_come_home(
    cluster, tmp_path, monkeypatch
):
    # Eight of them start on few cores here; the limits themselves are tested elsewhere.
    monkeypatch.setattr(run, "SLACK_S", 40.0)
    opened = run.open_run(TASK, cluster.address, folder=tmp_path, each="worker")
    assert len(opened.members) == 8
    ends = {"127.0.0.2-a": signal.SIGKILL, "127.0.0.3-b": signal.SIGSTOP}
    at_once = []
    for rows in opened.events():
        for row in rows:
            name = row.name.split()[1]
            if row.share > 0 and row.running and name in ends:
                os.kill(cluster.pids[name], ends.pop(name))
        running = [row.host for row in rows if row.running]
        at_once.append(len(running) - len(set(running)))
    told = {o.name.split()[1]: o for o in opened.gathered().outcomes}
    assert not ends
    assert max(at_once) == 0
    whole = [o for o in told.values() if o.how == "completed"]
    assert len(whole) == 6
    assert all(load_finding(o.path).timings for o in whole)
    assert len(list(tmp_path.glob("*.json"))) == 6
    assert told["127.0.0.2-a"].how == "left"
    assert "killed" in told["127.0.0.2-a"].said
    assert told["127.0.0.3-b"].how == "cut off"
    assert "Nothing was heard of it for" in told["127.0.0.3-b"].said
    # The one of a worker that stands still ends by itself.
    _, alive = psutil.wait_procs(measuring(cluster.folder), timeout=LONG_S)
    assert alive == []


def test_stop_keeps_what_all_measured_by_then_and_a_client_that_is_given_lives_on(
    cluster, tmp_path
):
    with Client(cluster.address, set_as_default=False) as client:
        opened = run.open_run(LONG, client, folder=tmp_path)
        for rows in opened.events():
            if all(row.share > 0.05 for row in rows):
                opened.stop()
        assert [row.how for row in opened.members] == ["stopped"] * 4
        assert len(opened.gathered().findings) == 4
        assert client.status == "running"
        psutil.wait_procs(measuring(cluster.folder), timeout=LONG_S)
        assert measuring(cluster.folder) == []


def test_without_a_scheduler_all_is_over_and_said(cluster, tmp_path):
    opened = run.open_run(LONG, cluster.address, folder=tmp_path)
    for rows in opened.events():
        if all(row.share > 0 for row in rows):
            os.kill(cluster.scheduler, signal.SIGKILL)
    assert {row.said.partition(",")[0] for row in opened.members} == {
        "The scheduler was lost during the run"
    }
    _, alive = psutil.wait_procs(measuring(cluster.folder), timeout=LONG_S)
    assert alive == []


ASK = """
import sys
from perfkit.fleet import run
from perfkit.fleet.process import Task
task = Task(experiment="counting", budget=60.0)
for rows in run.open_run(task, sys.argv[1]).events():
    if all(row.share > 0 for row in rows):
        print("measuring", flush=True)
"""


def test_where_the_asking_process_is_killed_the_workers_end_what_they_measure(
    cluster, tmp_path
):
    asking = subprocess.Popen(
        [sys.executable, "-c", ASK, cluster.address],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{HERE / 'on_hosts'}:{HERE.parents[1]}"},
        stdout=subprocess.PIPE,
    )
    assert asking.stdout.readline() == b"measuring\n"
    started = measuring(cluster.folder)
    assert len(started) == 4
    asking.kill()
    asking.communicate()
    _, alive = psutil.wait_procs(started, timeout=LONG_S / 2)
    assert alive == []
