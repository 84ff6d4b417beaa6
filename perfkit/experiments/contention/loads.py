"""Known loads to set beside a training: what another program on the machine would do.

A load is a few processes that a trial starts. They are of its process group, so they
stand still and end with it, and the monitor counts them as other programs. Each ends by
itself when its time is over or the trial is gone.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from perfkit.errors import RunError
from perfkit.experiments.shared import cores
from perfkit.experiments.shared import probe_disk as disk
from perfkit.experiments.shared.probe_memory import array_bytes
from perfkit.measure.monitor import OTHERS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

# Far longer than a round of trials, and short for whoever would wait for it.
LIMIT_S = 300.0
# What all copies of a load hold together, half in the arrays they copy from, or as
# much of what is free: enough to be seen among what other programs hold.
_HELD_BYTES, _HELD_SHARE = 2 << 30, 4
# Before the verdict is known, this must not tell which load it was.
_ENDED = "what was to disturb this training ended before it did, so nothing is said"


@dataclass(frozen=True)
class Load:
    """One kind of load.

    Attributes:
        name: As arms and charts have it.
        work: Which work of ``disturbing`` it does.
        what: What it does, in a line.
        many: Whether it runs in several processes; else in one.
    """

    name: str
    work: str
    what: str
    many: bool = False


CPU, MEMORY, DISK, GPU = "cpu burners", "memory bandwidth", "disk reader", "gpu product"
LOADS = {
    load.name: load
    for load in (
        Load(CPU, "cpu", "Other processes compute, each on a core.", many=True),
        Load(
            MEMORY,
            "memory",
            "Other processes copy arrays that no cache holds.",
            many=True,
        ),
        Load(DISK, "disk", "Another process reads a file from the disk."),
        Load(GPU, "gpu", "Another process multiplies matrices on the GPU."),
    )
}


class AtWork:
    """The processes of one load."""

    def __init__(self, processes: list[subprocess.Popen[bytes]]) -> None:
        self._processes = processes

    @property
    def pids(self) -> tuple[int, ...]:
        """The numbers of the processes."""
        return tuple(process.pid for process in self._processes)

    def check(self) -> None:
        """Make sure that the load still disturbs.

        Raises:
            RunError: A process of it has ended: the time was over, or it was killed.
        """
        if any(process.poll() is not None for process in self._processes):
            raise RunError(_ENDED)

    def wait(self) -> None:
        """Return once every process has done its first step.

        Raises:
            RunError: One ended before that.
        """
        for process in self._processes:
            assert process.stdout is not None
            if not process.stdout.read(1):
                raise RunError(_ENDED)


@contextlib.contextmanager
def at_work(
    load: Load, processes: int = 0, *, limit: float = LIMIT_S
) -> Iterator[AtWork]:
    """Let a load work while the block runs; it begins once the load is at work.

    Args:
        load: Which.
        processes: Of a load that runs in several; 0 for one per core.
        limit: Seconds after which it ends whatever happens.

    Raises:
        RunError: It could not start.
    """
    count = (processes or cores.granted()) if load.many else 1
    running: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            running.append(_started(load, count, limit))
        working = AtWork(running)
        working.wait()
        yield working
    finally:
        _end(running)


def _started(load: Load, count: int, limit: float) -> subprocess.Popen[bytes]:
    words = (load.work, str(limit), str(os.getpid()), _needs(load, count))
    return subprocess.Popen(
        # -P keeps a file of the reader's from standing in for a module.
        [
            sys.executable,
            "-P",
            "-m",
            "perfkit.experiments.contention.disturbing",
            *words,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, OTHERS_VARIABLE: "1"},
    )


def _end(running: list[subprocess.Popen[bytes]]) -> None:
    for process in running:
        process.kill()
    for process in running:
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _needs(load: Load, count: int) -> str:
    if load.name == MEMORY:
        held = min(_HELD_BYTES, psutil.virtual_memory().available // _HELD_SHARE)
        return str(max(array_bytes(), held // 2) // count)
    return disk.files("")[0] if load.name == DISK else ""
