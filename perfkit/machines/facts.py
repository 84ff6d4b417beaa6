"""In what two machines differ: hardware, software, settings, load."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from perfkit import units
from perfkit.findings.text import plain
from perfkit.machine.checks import checks
from perfkit.machine.record import Machine, computing
from perfkit.machines.sides import Side

# Two readings that are no further apart than this are alike.
_SAME = 0.05
_LONGEST = 80


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing in which two machines differ: what it is on A and on B, in words."""

    name: str
    a: str
    b: str


def _hertz(value: float) -> str:
    return units.rate(value, "Hz")


# Where it stands in a record, by what it is called; "gpu" is the card that computes.
_READINGS = {
    "cores granted": "machine.cores_granted",
    "cores present": "machine.cores",
    "processor": "machine.cpu",
    "GPUs": "gpus",
    "GPU memory": "gpu.memory",
    "link lanes under load": "gpu.link.busy_width",
    "link generation under load": "gpu.link.busy_generation",
    "highest GPU clock": "gpu.clocks.sm_max",
    "GPU slowed by": "gpu.clocks.busy_throttle",
    "instruction sets": "machine.processor.instructions",
    "highest frequency": "machine.processor.frequency_max",
    "memory granted": "machine.memory",
    "file system of the data": "machine.disk.filesystem",
    "cores that other programs kept busy": "others",
    "governor": "machine.processor.governor",
    "energy preference": "machine.processor.preference",
    "on battery": "machine.load.on_battery",
    "TensorFlow build": "machine.software.build",
    "Python": "machine.python",
    "NVIDIA driver": "machine.driver.version",
    "system": "machine.system",
}
_WRITERS = {
    **dict.fromkeys(("GPU memory", "memory granted"), units.size),
    **dict.fromkeys(("highest GPU clock", "highest frequency"), _hertz),
}


def differing_facts(a: Side, b: Side) -> tuple[Fact, ...]:
    """In what two machines differ; what one of them does not tell is no difference."""
    one, other = _told(a), _told(b)
    named = [_fact(name, one[name], other[name]) for name in _READINGS]
    for field, absent in (("environment", "not set"), ("versions", "not installed")):
        mine, theirs = (dict(_entries(side.machine, field)) for side in (a, b))
        named += (
            _fact(plain(name, 60), mine.get(name, absent), theirs.get(name, absent))
            for name in dict.fromkeys((*mine, *theirs))
        )
    return tuple(fact for fact in named if fact)


def _told(side: Side) -> dict[str, Any]:
    """What a machine's record tells, by name; None where it does not."""
    machine = side.machine
    roots = {
        "machine": machine,
        "gpu": computing(machine.gpus, machine.environment)[1],
        "gpus": ", ".join(gpu.name for gpu in machine.gpus[:8]) or "none",
        "others": side.cores_of_others,
    }
    return {name: _value(roots, where) for name, where in _READINGS.items()}


def _value(roots: dict[str, Any], where: str) -> Any:
    root, *names = where.split(".")
    return functools.reduce(
        lambda record, name: None if record is None else getattr(record, name),
        names,
        roots[root],
    )


def _entries(machine: Machine, field: str) -> Iterator[tuple[str, str]]:
    """Variables, or versions of which those that do the work come first."""
    entries: dict[str, str] = getattr(machine, field)
    first = ("tensorflow", "keras", "numpy")
    yield from ((name, entries[name]) for name in first if name in entries)
    yield from entries.items()


def _fact(name: str, a: Any, b: Any) -> Fact | None:
    if a is None or b is None or a == b:
        return None
    if isinstance(a, tuple):
        # Of two lists what only one of them holds.
        a, b = (" ".join(sorted({*x} - {*y})) or "no more" for x, y in ((a, b), (b, a)))
    elif isinstance(a, bool):
        a, b = ("yes" if value else "no" for value in (a, b))
    elif isinstance(a, int | float):
        if abs(a - b) <= _SAME * max(abs(a), abs(b)):
            return None
        a, b = map(_WRITERS.get(name, units.significant), (a, b))
    return Fact(name=name, a=plain(a, _LONGEST), b=plain(b, _LONGEST))


def remedies(a: Side, b: Side) -> Iterator[str]:
    """What the doctor finds on one of the two alone, and what to do, a sentence each.

    The checks are made anew from the records: no words of a file are advice.
    """
    ill = [
        {
            c.title: c.remedy
            for c in checks(side.machine)
            if c.status in ("fail", "warn")
        }
        for side in (a, b)
    ]
    for name, mine, theirs in (("A", ill[0], ill[1]), ("B", ill[1], ill[0])):
        for title, remedy in mine.items():
            if title not in theirs and remedy:
                yield f"On {name}: {title}. {remedy}"
