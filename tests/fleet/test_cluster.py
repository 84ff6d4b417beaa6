"""A real scheduler and real workers, of which some die or fall silent."""

import os
import pkgutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from distributed import Client, LocalCluster

from perfkit.errors import RunError
from perfkit.findings.store import load_finding
from perfkit.fleet import run
from perfkit.fleet.cluster import members, why
from perfkit.fleet.process import Task
from tests.fleet.scripted import left, measuring

HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {"PYTHONPATH": str(HERE / "on_hosts")}
LONG_S = 60
WORKERS = {
    "tcp://10.0.0.10:5001": {"host": "10.0.0.10", "name": "gpu-0"},
    "tcp://10.0.0.10:5002": {"host": "10.0.0.10", "name": "tcp://10.0.0.10:5002"},
    "tcp://10.0.0.9:5001": {"host": "10.0.0.9", "name": 3},
    "tls://[fe80::1]:5001": {"host": "fe80::1", "name": "far"},
}
TASK = Task(experiment="counting", budget=6.0)
LONG = Task(experiment="counting", budget=LONG_S)


def test_one_worker_speaks_for_its_host_or_each_for_itself():
    assert [m.name for m in members(WORKERS)] == ["fe80::1", "10.0.0.9", "10.0.0.10"]
    assert members(WORKERS)[2].key == "tcp://10.0.0.10:5001"
    names = [m.name for m in members(WORKERS, each="worker")]
    assert names == ["fe80::1 far", "10.0.0.9 3", "10.0.0.10 gpu-0", "10.0.0.10 5002"]
    # What one calls itself cannot disturb a terminal.
    sly = {"tcp://10.0.0.1:1": {"host": "10.0.0.1", "name": "\x1b[2Jx"}}
    assert members(sly, each="worker")[0].name == "10.0.0.1 [2Jx"


@pytest.mark.parametrize("name", ["perfkit_9:work", "perfkit.fleet.cluster:work_9"])
def test_a_worker_with_no_perfkit_or_an_older_one_is_told_so(name):
    with pytest.raises((ImportError, AttributeError)) as caught:
        pkgutil.resolve_name(name)
    assert why(caught.value).startswith("It has no perfkit, or an older one")


def test_a_client_that_is_closed_is_refused_or_told_as_lost():
    with LocalCluster(1, processes=False, dashboard_address=None) as local:
        client = Client(local, set_as_default=False)
        opened = run.open_run(TASK, client)
        client.close()
        assert list(opened.events())[-1][0].said.startswith("The scheduler was lost")
        with pytest.raises(RunError, match="connect a client anew"):
            run.open_run(TASK, client)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hosts")
    process = subprocess.Popen(
        [sys.executable, str(HERE / "cluster_process.py"), str(folder)],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(folder / "log.txt").open("wb"),
        text=True,
    )
    lines = [process.stdout.readline().split() for _ in range(7)]
    pids = {name: int(pid) for pid, name in lines}
    address = next(iter(pids))
    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(6, timeout=LONG_S)
    yield SimpleNamespace(address=address, pids=pids, folder=folder)
    process.communicate("")


@pytest.fixture(autouse=True)
def nothing_left(request):
    """Whatever became of the asking machine, the scheduler and the workers."""
    yield
    if "cluster" in request.fixturenames:
        assert left(request.getfixturevalue("cluster").folder) == []


def test_stop_keeps_what_all_measured_and_leaves_a_client_alone(cluster, tmp_path):
    with Client(cluster.address, set_as_default=False) as client:
        opened = run.open_run(LONG, client, folder=tmp_path)
        for members_now in opened.events():
            if all(member.share > 0 for member in members_now):
                opened.stop()
        told = [(member.name, member.how) for member in opened.members]
        assert told == [(f"127.0.0.{n}", "stopped") for n in (1, 2, 3)]
        assert len(opened.gathered().findings) == 3
        assert client.status == "running"


@pytest.mark.fault("fleet", "kernel killed", sees="Nothing: the workers end as well.")
def test_where_who_asks_is_killed_the_workers_end_what_they_measure(cluster, tmp_path):
    line = f"-m perfkit fleet {cluster.address} run counting --budget {LONG_S}"
    asking = subprocess.Popen(
        [sys.executable, *line.split()],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    )
    told = 0
    while told < 3:
        told += "measuring" in asking.stderr.readline()
    assert len(measuring(cluster.folder)) >= 3
    asking.kill()
    asking.communicate()
    assert left(cluster.folder, seconds=LONG_S / 2) == []


@pytest.mark.fault("fleet", "SIGKILL", sees="It has left; the others come home.")
@pytest.mark.fault("fleet", "SIGSTOP", sees="It is cut off; the others come home.")
def test_of_one_killed_and_one_cut_off_the_others_come_home(
    cluster, tmp_path, monkeypatch
):
    # Six of them start on few cores here; the limits themselves are tested elsewhere.
    monkeypatch.setattr(run, "SLACK_S", 40.0)
    opened = run.open_run(TASK, cluster.address, folder=tmp_path, each="worker")
    assert len(opened.members) == 6
    ends = {"127.0.0.2-a": signal.SIGKILL, "127.0.0.3-b": signal.SIGSTOP}
    at_once = []
    for members_now in opened.events():
        for member in members_now:
            name = member.name.split()[1]
            if member.share > 0 and member.running and name in ends:
                os.kill(cluster.pids[name], ends.pop(name))
        running = [member.host for member in members_now if member.running]
        at_once.append(len(running) - len(set(running)))
    assert not ends
    assert max(at_once) == 0
    told = {o.name.split()[1]: o for o in opened.gathered().outcomes}
    whole = [o for o in told.values() if o.how == "completed"]
    assert len(whole) == 4
    assert all(load_finding(o.path).timings for o in whole)
    assert len(list(tmp_path.glob("*.json"))) == 4
    assert told["127.0.0.2-a"].how == "left"
    assert "killed" in told["127.0.0.2-a"].said
    assert told["127.0.0.3-b"].how == "cut off"
    assert "Nothing was heard of it for" in told["127.0.0.3-b"].said
    assert opened._fleet._client.status == "closed"
    # The one of a worker that stands still ends by itself.
    assert left(cluster.folder) == []
    os.kill(cluster.pids["127.0.0.3-b"], signal.SIGCONT)


@pytest.mark.fault("fleet", "SIGKILL", sees="That the scheduler was lost.")
def test_without_a_scheduler_all_is_over_and_said(cluster, tmp_path):
    opened = run.open_run(LONG, cluster.address, folder=tmp_path)
    for members_now in opened.events():
        if all(member.share > 0 for member in members_now):
            os.kill(cluster.pids[cluster.address], signal.SIGKILL)
    for member in opened.members:
        assert member.said.startswith("The scheduler was lost during the run")
