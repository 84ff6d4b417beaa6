"""What else does the machine do? Two looks at its counters, a moment apart.

Between the looks the rest of the machine is described, so that nobody waits for them.
"""

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path

import psutil

from perfkit.machine import limits
from perfkit.machine.limits import call_or_none
from perfkit.machine.record import BUSY, IDLE, Busy, Gpu, Load, throttle_reasons

_COLUMNS = ("busy", "pcie_rx", "pcie_tx", "throttle", "link_generation", "link_width")
# A GPU that moves so many bytes per second has left its idle clocks and its idle link.
_TRAFFIC = 100e6
# Samples with work, below which nothing is said.
_ENOUGH = 3
# Share of the samples in which the same reason slowed it. One alone proves nothing.
_OFTEN = 0.1

Sample = dict[str, float]


def observed(
    gpus: Sequence[Gpu], samples: Mapping[str, Sequence[float | None]]
) -> tuple[Gpu, ...]:
    """The GPUs, in the driver's order, with what a run's samples saw of their work."""
    return tuple(_with_what_was_seen(gpu, n, samples) for n, gpu in enumerate(gpus))


def _with_what_was_seen(
    gpu: Gpu, number: int, columns: Mapping[str, Sequence[float | None]]
) -> Gpu:
    mine = (columns.get(f"gpu{number}_{name}", ()) for name in _COLUMNS)
    rows = (dict(zip(_COLUMNS, row, strict=True)) for row in zip_longest(*mine))
    samples = ({n: v for n, v in row.items() if v is not None} for row in rows)
    working = [sample for sample in samples if _works(sample)]
    if len(working) < _ENOUGH:
        return gpu
    link = replace(
        gpu.link,
        busy_generation=_highest(working, "link_generation"),
        busy_width=_highest(working, "link_width"),
    )
    clocks = replace(gpu.clocks, busy_throttle=_throttle(working))
    return replace(gpu, link=link, clocks=clocks)


def _works(sample: Sample) -> bool:
    if max(sample.get("pcie_rx", 0.0), sample.get("pcie_tx", 0.0)) >= _TRAFFIC:
        return True
    if "busy" in sample:
        return sample["busy"] >= BUSY
    # Where the driver hides how busy it is, it may still say that it is not idle.
    return "throttle" in sample and not int(sample["throttle"]) & IDLE


def _highest(samples: Iterable[Sample], name: str) -> int | None:
    return max((int(s[name]) for s in samples if name in s), default=None)


def _throttle(samples: Iterable[Sample]) -> tuple[str, ...] | None:
    masks = [sample["throttle"] for sample in samples if "throttle" in sample]
    if not masks:
        return None
    reasons = [reason for mask in masks for reason in throttle_reasons(mask)]
    often = max(2, len(masks) * _OFTEN)
    return tuple(r for r in dict.fromkeys(reasons) if reasons.count(r) >= often)


# Counters move in steps of 10 ms: this long, they tell a thirtieth of a core.
WINDOW_S = 0.3
# Fewer cores than this are a clock that ticks, or a window that is drawn.
_NAMED_FROM = 0.1
_MOST_NAMED = 5
_WANTED = ["ppid", "name", "cpu_times", "create_time"]

# Number and time of start: numbers are given again.
Process = tuple[int, float]


@dataclass(frozen=True, kw_only=True)
class Look:
    """What the counters say at one moment, in seconds of all cores since the start.

    Attributes:
        total: Time that the cores had, whatever they did; None where nobody counts.
        busy: Time in which they worked for this machine.
        cpu_s: What each process used.
        family: This process and those that it started.
        names: Of the programs.
        read_at: When, in seconds of a clock that only this process has.
    """

    total: float | None = None
    busy: float = 0.0
    cpu_s: dict[Process, float] = field(default_factory=dict)
    family: frozenset[Process] = frozenset()
    names: dict[Process, str] = field(default_factory=dict)
    read_at: float = field(default_factory=time.monotonic)


def look() -> Look:
    """Read the counters."""
    times = call_or_none(psutil.cpu_times)
    if times is None:
        return Look()
    # Guest time is counted in user time already; stolen time is no program's.
    lost = sum(getattr(times, name, 0.0) for name in ("guest", "guest_nice"))
    idle = sum(getattr(times, name, 0.0) for name in ("idle", "iowait", "steal"))
    total = sum(times) - lost
    programs = call_or_none(lambda: list(psutil.process_iter(_WANTED))) or []
    processes = {
        (program.pid, program.info["create_time"] or 0.0): program.info
        for program in programs
        if program.info["cpu_times"] is not None
    }
    return Look(
        total=total or None,
        busy=total - idle,
        # The first two are its own; those of its children that ended are not here.
        cpu_s={key: sum(info["cpu_times"][:2]) for key, info in processes.items()},
        family=_own_processes(
            {key: info["ppid"] or 0 for key, info in processes.items()}
        ),
        names={key: (info["name"] or "")[:40] for key, info in processes.items()},
    )


def load(before: Look, after: Look, root: Path) -> Load:
    """Say what went on between two looks, and how memory stands."""
    memory = call_or_none(psutil.virtual_memory)
    # There is no such function where the system tells of no batteries.
    battery = call_or_none(lambda: psutil.sensors_battery())
    # psutil may see a battery and not know whether it is in use.
    plugged = battery and battery.power_plugged
    current = Load(
        memory_free=memory and limits.memory_free(root, memory.available),
        on_battery=None if plugged is None else not plugged,
    )
    cores = call_or_none(psutil.cpu_count)
    if before.total is None or after.total is None or not cores or not after.family:
        return current
    seconds = (after.total - before.total) / cores
    if seconds <= 0:
        return current
    spent = {
        key: max(0.0, cpu_s - before.cpu_s.get(key, 0.0)) / seconds
        for key, cpu_s in after.cpu_s.items()
    }
    mine = sum(spent[key] for key in after.family)
    # Counters are not read all at once, so a difference may come out below 0.
    other_cores = max(0.0, (after.busy - before.busy) / seconds - mine)
    return replace(current, others=round(other_cores, 3), top=_top(after, spent))


def _own_processes(parents: Mapping[Process, int]) -> frozenset[Process]:
    """This process and all that it started: what they do is not what others do."""
    family = {os.getpid()}
    children = family
    while children:
        children = {n for (n, _), p in parents.items() if p in children} - family
        family = family | children
    return frozenset(key for key in parents if key[0] in family)


def _top(after: Look, spent: Mapping[Process, float]) -> tuple[Busy, ...]:
    cores = defaultdict[str, float](float)
    for key in spent.keys() - after.family:
        cores[after.names[key]] += spent[key]
    busiest = sorted(cores.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        Busy(program=program, cores=round(busy, 3))
        for program, busy in busiest[:_MOST_NAMED]
        if busy >= _NAMED_FROM
    )
