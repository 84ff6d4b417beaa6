"""What else does the machine do? Two looks at its counters, a moment apart.

Between the looks the rest of the machine is described, so that nobody waits for them.
"""

import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from perfkit.machine import limits
from perfkit.machine.gpu import BUSY, IDLE, Gpu, throttle_reasons
from perfkit.machine.limits import amounts_of, call_or_none, folders, text_of, word_of
from perfkit.machine.record import Busy, Load

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
    """The GPUs, in the driver's order, told what a run's samples saw of their work."""
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
    seen = [reason for mask in masks for reason in throttle_reasons(mask)]
    often = max(2, len(masks) * _OFTEN)
    return tuple(r for r in dict.fromkeys(seen) if seen.count(r) >= often)


# Number and time of start: numbers are given again.
Process = tuple[int, float]

# Counters move in steps of 10 ms: this long, they tell a thirtieth of a core.
WINDOW_S = 0.3
_TICKS_PER_S = 100
# Fewer cores than this are a clock that ticks, or a window that is drawn.
_NAMED_FROM = 0.1
_MOST_NAMED = 5
_IDLE, _IOWAIT, _STEAL = 3, 4, 7
# Name, parent, four times and the start; a name may hold spaces and brackets itself.
_N = r"([0-9]{1,18})"
_STAT = re.compile(
    rf"[0-9]+ \((.*)\) \S {_N} (?:\S+ ){{9}}{_N} {_N} {_N} {_N} (?:\S+ ){{4}}{_N}\b",
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Used:
    """The time that one process has used, in seconds.

    Attributes:
        by_itself: Its own; ``by_ended`` is that of its children which have ended.
        parent: The number of its parent.
    """

    program: str
    parent: int
    by_itself: float
    by_ended: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Look:
    """What the counters say at one moment, in seconds of all cores since the start.

    Attributes:
        total: Time that the cores had, whatever they did; None if not told.
        busy: Time in which they worked for this machine.
        stolen: Time that a hypervisor gave to others; None if not told.
        cores: How many they are.
        me: Number of this process.
        processes: What each of them used.
    """

    total: float | None = None
    busy: float = 0.0
    stolen: float | None = None
    cores: int = 0
    me: int | None = None
    processes: dict[Process, Used] = field(default_factory=dict)
    taken: float = field(default_factory=time.monotonic)


def look(root: Path, system: Any) -> Look:
    """Read the counters."""
    if not (root / "proc").is_dir():
        return _told(system)
    text = text_of(root / "proc/stat")
    line = re.search(r"^cpu  ?((?:[0-9]{1,18} ?){4,12})$", text, re.MULTILINE)
    times = [int(number) / _TICKS_PER_S for number in line[1].split()] if line else []
    me = re.match(r"[0-9]{1,9}\b", text_of(root / "proc/self/stat"))
    return Look(
        # Guest time, the ninth and tenth, is counted in user time already.
        total=sum(times[:8]) or None,
        busy=sum(times[:7]) - sum(times[_IDLE : _IOWAIT + 1]),
        stolen=times[_STEAL] if len(times) > _STEAL else None,
        cores=len(re.findall(r"^cpu[0-9]+ ", text, re.MULTILINE)),
        me=int(me[0]) if me else None,
        processes=dict(_processes(root)),
    )


def load(before: Look, after: Look, root: Path, system: Any) -> Load:
    """Say what went on between two looks, and how memory stands."""
    now = Load(**_memory(root, system), on_battery=_on_battery(root, system))
    passed = _difference(before.total, after.total)
    # Without the cores' time nothing can be said about a share of it.
    if not passed or not after.cores:
        return now
    stolen = _difference(before.stolen, after.stolen)
    seconds, own = passed / after.cores, _own(after)
    now = replace(
        now,
        seconds=round(seconds, 3),
        steal=None if stolen is None else round(stolen / passed, 3),
    )
    if not own:
        return now
    spent = _spent(before, after)
    mine = sum(spent[key] for key in own) + _ended(before, after, own)
    others = after.busy - before.busy - mine
    # Counters are not read all at once, so a difference may come out below 0.
    return replace(
        now,
        others=round(max(0.0, others) / seconds, 3),
        top=tuple(_top(after, spent, own, seconds)),
    )


def _processes(root: Path) -> Iterator[tuple[Process, Used]]:
    for folder in folders(root / "proc", r"[0-9]{1,9}"):
        if found := _STAT.match(text_of(folder / "stat")):
            parent, *ticks, started = (int(number) for number in found.groups()[1:])
            times = [count / _TICKS_PER_S for count in ticks]
            yield (
                (int(folder.name), float(started)),
                Used(
                    program=found[1][:40],
                    parent=parent,
                    by_itself=sum(times[:2]),
                    by_ended=sum(times[2:]),
                ),
            )


def _told(system: Any) -> Look:
    times = call_or_none(system.cpu_times)
    if times is None:
        return Look()
    wanted = ["ppid", "name", "cpu_times", "create_time"]
    programs = call_or_none(lambda: list(system.process_iter(wanted))) or []
    return Look(
        total=sum(times) or None,
        busy=sum(times) - times.idle,
        cores=call_or_none(system.cpu_count) or 0,
        me=os.getpid(),
        processes={
            (program.pid, program.info["create_time"] or 0.0): Used(
                program=(program.info["name"] or "")[:40],
                parent=program.info["ppid"] or 0,
                by_itself=sum(program.info["cpu_times"][:2]),
            )
            for program in programs
            if program.info["cpu_times"] is not None
        },
    )


def _difference(before: float | None, after: float | None) -> float | None:
    """What a counter grew by; None where it is not told or was set back."""
    if before is None or after is None or after < before:
        return None
    return after - before


def _spent(before: Look, after: Look) -> dict[Process, float]:
    """Seconds that each process used itself."""
    spent = {}
    for key, now in after.processes.items():
        then = before.processes.get(key)
        spent[key] = max(0.0, now.by_itself - (then.by_itself if then else 0.0))
    return spent


def _ended(before: Look, after: Look, own: list[Process]) -> float:
    """Seconds between the looks of children of ours that have ended."""
    known = before.processes
    lives = sum(
        after.processes[key].by_ended - (known[key].by_ended if key in known else 0.0)
        for key in own
    )
    # A parent is told the whole life of each, also what was before the first look.
    gone = [known[key] for key in _own(before) if key not in after.processes]
    return max(0.0, lives - sum(one.by_itself + one.by_ended for one in gone))


def _own(of: Look) -> list[Process]:
    """This process and all that it started: what they do is not what others do."""
    family = {of.me}
    rest = dict(of.processes)
    while found := [k for k, u in rest.items() if k[0] in family or u.parent in family]:
        family |= {number for number, _ in found}
        for key in found:
            del rest[key]
    return [key for key in of.processes if key not in rest]


def _top(
    after: Look, spent: dict[Process, float], own: list[Process], seconds: float
) -> Iterator[Busy]:
    cores = defaultdict[str, float](float)
    for key in spent.keys() - set(own):
        cores[after.processes[key].program] += spent[key] / seconds
    most = sorted(cores.items(), key=lambda item: (-item[1], item[0]))
    for program, busy in most[:_MOST_NAMED]:
        if busy >= _NAMED_FROM:
            yield Busy(program=program, cores=round(busy, 3))


def _memory(root: Path, system: Any) -> dict[str, Any]:
    if not (root / "proc").is_dir():
        memory, swap = (
            call_or_none(system.virtual_memory),
            call_or_none(system.swap_memory),
        )
        return {
            "memory_free": memory.available if memory else None,
            "swap": swap.used if swap else None,
            "swap_present": swap.total if swap else None,
        }
    said = amounts_of(root / "proc/meminfo")
    free, present = said.get("MemAvailable"), said.get("SwapTotal")
    used = _difference(said.get("SwapFree"), present)
    return {
        "memory_free": None if free is None else limits.memory_free(root, free),
        "swap": limits.swap_used(root, said.get("MemTotal"), used),
        "swap_present": present,
    }


def _on_battery(root: Path, system: Any) -> bool | None:
    """Whether a battery feeds the machine; one in a mouse does not."""
    if not (root / "proc").is_dir():
        battery = call_or_none(lambda: system.sensors_battery())
        return None if battery is None else not battery.power_plugged
    supplies = folders(root / "sys/class/power_supply", r"[^/\0]+")
    own = [s for s in supplies if word_of(s / "scope") != "Device"]
    batteries = [s for s in own if word_of(s / "type") == "Battery"]
    if not batteries:
        return None
    mains = [s for s in own if s not in batteries]
    plugged = any(text_of(supply / "online") == "1" for supply in mains)
    states = {word_of(battery / "status") for battery in batteries}
    return not plugged and "Discharging" in states
