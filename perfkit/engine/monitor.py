"""Watches the machine while trials run: load, memory, disk, GPUs, speed of a core.

A thread of the parent samples five times a second. A reading that this system does not
give is absent, never 0, and one that fails does not take the others with it.
"""

import collections
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from perfkit.machine.limits import amounts_of
from perfkit.machine.nvml import GpuReader

# About 1 ms of integer arithmetic on a core of 2020.
_LINKS = 12_000
_MASK = (1 << 31) - 1


def core_speed() -> float:
    """Run the chain once and return its speed, in chains per second of CPU time."""
    number = 1
    began = time.thread_time_ns()
    for _ in range(_LINKS):
        number = (number * 48_271 + 11) & _MASK
    return 1e9 / max(1, time.thread_time_ns() - began)


PERIOD_S = 0.2
# A trial may start a process that stands for another program. It is set in what such a
# process is given as environment, and what it does then counts as others'.
OTHERS_VARIABLE = "PERFKIT_STANDS_FOR_OTHERS"
# Every so many samples: the speed of a core, and what costs the system more to tell.
_CORE_SPEED_EVERY = 2
_SLOW_EVERY = 5
# Of an hour; a file has no room for those of a day, above all with several GPUs.
_MOST = 18_000
# A call that a system does not have is an AttributeError or a NotImplementedError.
_READINGS = (
    *(OSError, psutil.Error, ValueError, KeyError, IndexError),
    *(AttributeError, RuntimeError),
)
_BLOCKS = Path("/sys/block")
_NO_DISKS = ("loop", "ram", "zram")


class Monitor:
    """Samples the machine until it is stopped."""

    def __init__(self) -> None:
        self._zero_ns = 0
        self._trial: _Tree | None = None
        self._trees: dict[int, _Tree] = {}
        self._trial_cpu: dict[int, float] = {}
        self._rates = _Rates()
        self._gpus = GpuReader()
        self._taken = 0
        self._slow: dict[str, float] = {}
        self._fresh: collections.deque[dict[str, float]] = collections.deque()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._sample_until_stopped, daemon=True, name="perfkit-monitor"
        )

    def start(self, zero_ns: int) -> None:
        """Begin to sample, from ``zero_ns`` of ``time.perf_counter_ns`` on, once."""
        if not self._thread.is_alive():
            self._zero_ns = zero_ns
            # Where the system has no room for a thread, a run goes on without samples.
            with contextlib.suppress(RuntimeError):
                self._thread.start()

    def stop(self) -> None:
        """Take no more samples."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._gpus.close()

    def watch(self, pid: int | None, round_pids: Sequence[int] = ()) -> None:
        """Say which process has its turn, if any, and which belong to its round."""
        # What a trial has done is counted before it ends, or it would look like others.
        self._count_trials()
        trees = self._trees
        pids = {p for p in (*round_pids, pid) if p is not None}
        self._trees = {p: trees.get(p) or _Tree(p) for p in pids}
        self._trial = None if pid is None else self._trees[pid]

    def take(self) -> list[dict[str, float]]:
        """The samples since the last call, oldest first."""
        return [self._fresh.popleft() for _ in range(len(self._fresh))]

    def _sample_until_stopped(self) -> None:
        while not self._stop.is_set():
            began = time.perf_counter()
            self._fresh.append(self._sample())
            self._taken += 1
            # A late sample is not made up for: counters tick in steps of 10 ms, so that
            # over a short while two cores may seem to have been four.
            self._stop.wait(began + PERIOD_S - time.perf_counter())

    def _sample(self) -> dict[str, float]:
        now_ns = time.perf_counter_ns()
        sample = {"t": (now_ns - self._zero_ns) / 1e9}
        for reading in (self._cpu, self._disk):
            with contextlib.suppress(*_READINGS):
                sample |= reading()
        if self._taken % _SLOW_EVERY == 0:
            self._slow = dict(self._slowly())
        sample |= self._slow | self._gpus.sample()
        if self._taken % _CORE_SPEED_EVERY == 0:
            sample["core_speed"] = core_speed()
        return sample

    def _count_trials(self) -> float:
        """CPU seconds that the trials of this run have used, ended ones included."""
        for pid, tree in list(self._trees.items()):
            with contextlib.suppress(*_READINGS):
                # With the time of children which have ended.
                seconds = tree.total(lambda process: sum(process.cpu_times()[:4]))
                seconds = max(seconds, self._trial_cpu.get(pid, 0.0))
                self._trial_cpu[pid] = seconds
        return sum(self._trial_cpu.values())

    def _cpu(self) -> dict[str, float]:
        began = time.perf_counter()
        times = psutil.cpu_times()
        # Guest time is counted in user time already, and stolen time is no program's.
        not_busy = ("idle", "iowait", "guest", "guest_nice", "steal")
        busy = sum(times) - sum(getattr(times, name, 0.0) for name in not_busy)
        counters = {
            "busy": busy,
            "cpu_perfkit": sum(os.times()[:2]),
            "cpu_trial": self._count_trials(),
        }
        # Whoever else wants the cores may hold this thread up between the counters.
        load = self._rates.of_all((began + time.perf_counter()) / 2, counters)
        if len(load) < len(counters):
            return {}
        # The counters tick in steps of 10 ms, so a difference may come out below 0.
        other_cores = load.pop("busy") - sum(load.values())
        return load | {"cpu_other": max(0.0, other_cores)}

    def _disk(self) -> dict[str, float]:
        counters = dict[str, float]()
        if disks := list(_disks()):
            counters["disk_read"] = sum(disk.read_bytes for disk in disks)
        if (trial := self._trial) is not None:
            with contextlib.suppress(*_READINGS):
                counters["disk_read_trial"] = trial.total(
                    lambda process: process.io_counters().read_bytes
                )
        return self._rates.of_all(time.perf_counter(), counters)

    def _slowly(self) -> Iterator[tuple[str, float]]:
        with contextlib.suppress(*_READINGS):
            yield "memory_used", float(psutil.virtual_memory().used)
        if (trial := self._trial) is not None:
            trial.look_for_children()
            with contextlib.suppress(*_READINGS):
                yield "memory_trial", trial.total(_memory)


class _Tree:
    """A trial's process with the processes it started."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._processes: list[psutil.Process] = []
        with contextlib.suppress(*_READINGS):
            self._processes.append(psutil.Process(pid))

    def look_for_children(self) -> None:
        with contextlib.suppress(*_READINGS):
            children = self._processes[0].children(recursive=True)
            self._processes[1:] = [p for p in children if not _stands_for_others(p)]

    def total(self, read: Callable[[psutil.Process], Any]) -> float:
        """The sum of what is read of each; of a child that has just ended nothing."""
        if not self._processes:
            raise psutil.NoSuchProcess(self.pid)
        readings = []
        for index, process in enumerate(self._processes):
            try:
                readings.append(read(process))
            except psutil.Error:
                if index == 0:
                    raise
        return float(sum(readings))


class _Rates:
    """Turns counters that only grow into rates between two looks at them."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, float]] = {}

    def of_all(self, at_s: float, counters: dict[str, float]) -> dict[str, float]:
        """Change per second since the last look; absent at the first or a reset."""
        rates = {}
        for name, value in counters.items():
            before = self._last.get(name)
            self._last[name] = (at_s, value)
            if before is not None and at_s > before[0] and value >= before[1]:
                rates[name] = (value - before[1]) / (at_s - before[0])
        return rates


def _disks() -> Iterator[Any]:
    """The counters of each disk; one that is made of others counts in those."""
    for name, counters in psutil.disk_io_counters(perdisk=True).items():
        disk = _BLOCKS / name
        # Neither a partition nor what lies on other disks, or in memory.
        alone = disk.exists() and not any((disk / "slaves").glob("*"))
        if not _BLOCKS.is_dir() or (alone and not name.startswith(_NO_DISKS)):
            yield counters


def _stands_for_others(process: psutil.Process) -> bool:
    try:
        return OTHERS_VARIABLE in process.environ()
    except psutil.Error:
        return False


def _memory(process: psutil.Process) -> int:
    """Proportional share (PSS) where the system tells it, else the resident set."""
    pss = amounts_of(Path(f"/proc/{process.pid}/smaps_rollup")).get("Pss")
    return int(process.memory_info().rss) if pss is None else pss


def to_columns(
    samples: Sequence[dict[str, float]],
) -> dict[str, tuple[float | None, ...]]:
    """The readings of all samples by their names, as ``Finding.samples`` holds them.

    Those of a longer run lie further apart.
    """
    samples = samples[:: 1 + len(samples) // _MOST]
    names = dict.fromkeys(name for sample in samples for name in sample)
    columns = {name: tuple(s.get(name) for s in samples) for name in names}
    # A core's speed is told as a share of the fastest seen, which only the end knows.
    speeds = columns.get("core_speed", ())
    if best := max(filter(None, speeds), default=0.0):
        columns["core_speed"] = tuple(s if s is None else s / best for s in speeds)
    return columns
