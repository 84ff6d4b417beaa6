"""Fleets that are written down, on a clock that goes on by itself; and real ones."""

import contextlib
import json

import psutil

from perfkit.fleet.members import Member
from perfkit.fleet.process import Task
from perfkit.fleet.run import FleetRun
from tests.findings import made

TASK = Task(experiment="data-pipeline", budget=60.0, tensorflow="2.21.0")


def member(number, host=None, **more):
    name = f"host {number}"
    return Member(key=f"w{number}", host=host or f"h{number}", name=name, **more)


def members(count):
    return tuple(member(number) for number in range(1, count + 1))


def sent(document=None, how="completed", why=""):
    """What a member sends: a finding unless another document is given."""
    from perfkit.findings.store import to_json

    document = to_json(made.finding()) if document is None else document
    return json.dumps({"how": how, "why": why, "document": document}).encode()


class Fleet:
    """Members that do what a script says; each look at the news takes a second.

    Args:
        scripts: By key, what is heard so many seconds after the member began.
        members: Who they are.
    """

    def __init__(self, scripts, members):
        self.scripts, self.members = scripts, members
        self.now = 0.0
        self.began, self.tasks, self.tells, self.ended = {}, {}, {}, []
        self.closed = 0

    def begin(self, member, task, tell):
        self.began[member.key] = self.now
        self.tasks[member.key], self.tells[member.key] = task, tell

    def sleep(self, _):
        before, self.now = self.now, self.now + 1.0
        for key, began in self.began.items():
            for at, news in self.scripts.get(key, ()):
                if before < began + at <= self.now:
                    self.tells[key](news)

    def end(self, member=None):
        self.ended.append(member.key if member else None)

    def close(self):
        self.closed += 1

    def run(self, task, folder):
        return FleetRun(self, task, folder, lambda: self.now, self.sleep)


def doing(what, share):
    return {"doing": what, "share": share, "left": ""}


def whole(seconds=62, data=None):
    """A member's script: it tells how far it is every second, and then comes home."""
    told = [(at, doing(f"Round {at}", at / seconds)) for at in range(1, seconds)]
    return [*told, (seconds, sent() if data is None else data)]


def measuring(folder):
    """What measures with this folder, or one in it, for temporary files."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            where, line = process.environ().get("TMPDIR", ""), process.cmdline()
            # What begins so is a scheduler or a worker.
            if where.startswith(str(folder)) and "cluster_process.py" not in str(line):
                found.append(process)
    return found


def left(folder, seconds=60):
    """What still measures there after so long."""
    return psutil.wait_procs(measuring(folder), timeout=seconds)[1]
