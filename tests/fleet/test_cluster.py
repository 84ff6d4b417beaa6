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

from perfkit.findings.store import load_finding
from perfkit.fleet import asking as fleet_asking
from perfkit.fleet import opening
from perfkit.fleet.cluster import Cluster, _why, connect
from perfkit.fleet.outcome import Task

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
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
    address = process.stdout.readline().strip()
    lines = [process.stdout.readline().split() for _ in range(8)]
    pids = {name: int(pid) for pid, name in lines}
    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(8, timeout=60)
    yield SimpleNamespace(address=address, pids=pids, folder=folder)
    process.communicate("")


TASK = Task(what="run", experiment="counting", budget=6.0)


def children(folder):
    """What measures on the hosts of this cluster."""
    found = []
    for process in psutil.process_iter():
        try:
            line, where = process.cmdline(), process.environ().get("TMPDIR", "")
        except psutil.Error:
            continue
        if where.startswith(str(folder)) and "perfkit.fleet.child" in line:
            found.append(process)
    return found


def test_one_worker_speaks_for_each_host_unless_each_is_asked(cluster):
    four = Cluster(connect(cluster.address), ours=True)
    assert [m.name for m in four.members] == [f"127.0.0.{n}" for n in (1, 2, 3, 4)]
    assert four._client.status == "running"
    four.close()
    assert four._client.status == "closed"


def test_a_worker_without_perfkit_is_told_so():
    error = ModuleNotFoundError("No module named 'perfkit'")
    assert _why(error).startswith("It has no perfkit, or an older one")


def test_one_is_killed_and_one_is_cut_off_and_six_findings_come_home(
    cluster, tmp_path, monkeypatch
):
    # Eight of them start on few cores here; the limits themselves are tested elsewhere.
    monkeypatch.setattr(fleet_asking, "SLACK_S", 90.0)
    monkeypatch.setattr(fleet_asking, "LEASE_S", 8.0)
    asking = opening.open_asking(TASK, cluster.address, folder=tmp_path, each="worker")
    assert len(asking.rows) == 8
    ends = {"127.0.0.2-a": signal.SIGKILL, "127.0.0.3-b": signal.SIGSTOP}
    at_once = []
    for rows in asking.events():
        for row in rows:
            name = row.member.name.split()[1]
            if row.share > 0 and row.running and name in ends:
                os.kill(cluster.pids[name], ends.pop(name))
        running = [row.member.host for row in rows if row.running]
        at_once.append(len(running) - len(set(running)))
    gathered = asking.gathered()
    told = {o.member.name.split()[1]: o for o in gathered.outcomes}
    assert not ends
    assert max(at_once) == 0
    whole = [o for o in gathered.outcomes if o.how == "completed"]
    assert len(whole) == 6
    assert all(load_finding(o.path).timings for o in whole)
    assert len(list(tmp_path.glob("*.json"))) == 6
    assert told["127.0.0.2-a"].how == "left"
    assert "killed" in told["127.0.0.2-a"].said
    assert told["127.0.0.3-b"].how == "cut off"
    assert "Nothing was heard of it for" in told["127.0.0.3-b"].said
    _, alive = psutil.wait_procs(children(cluster.folder), timeout=60)
    assert alive == []
