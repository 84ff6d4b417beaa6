"""Is there enough RAM, or is the machine moving memory to disk?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.machine.check import Check, fine
from perfkit.machine.checks import asking

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.record import Machine

# Importing TensorFlow took 0.6 GB; a model, its input and a notebook come on top.
_LITTLE = 4e9
_LITTLE_FREE = 1.5e9
# Systems move what nobody uses to disk in good time: only both together are trouble.
_SWAPPED = 0.05
_TIGHT = 0.15


def swapping(machine: Machine) -> Iterator[Check]:
    """Much lies in swap while little RAM is free: pages go to and fro."""
    load = machine.load
    if load is None or load.swap is None or load.memory_free is None:
        return
    evidence = (
        f"{units.size(load.swap)} lie in swap, {units.size(load.memory_free)} of "
        f"{units.size(machine.memory)} are free."
    )
    much = load.swap >= _SWAPPED * machine.memory
    if not (much and load.memory_free < _TIGHT * machine.memory):
        yield fine("swap", "Memory stays in RAM", evidence)
        return
    yield Check(
        id="swapping",
        status="warn",
        title="Memory is moved to disk",
        evidence=evidence,
        why="What a training touches there comes back from the disk, far slower than "
        "from RAM.",
        remedy=make_room(machine),
        cost=0.55,
    )


def ram(machine: Machine) -> Iterator[Check]:
    """Little memory, or little of it left."""
    free = machine.load.memory_free if machine.load else None
    words = f"{units.size(machine.memory)} of RAM may be used"
    if machine.memory_present and machine.memory_present > machine.memory:
        words += f" of {units.size(machine.memory_present)}"
    evidence = words + (f", {units.size(free)} are free." if free is not None else ".")
    small = machine.memory < _LITTLE
    if not small and (free is None or free >= _LITTLE_FREE):
        yield fine("memory", "There is memory to work with", evidence)
        return
    yield Check(
        id="little-memory",
        status="warn",
        title="There is little memory" if small else "Little memory is left",
        evidence=evidence,
        why="TensorFlow alone takes more than half a gigabyte. Caches and shuffle "
        "buffers that do not fit are swapped, or end the training.",
        remedy=_more(machine) if small else make_room(machine),
        cost=0.4,
    )


def _more(machine: Machine) -> str:
    return {
        "container": "On the host: docker update --memory 8g --memory-swap 8g "
        "CONTAINER; in Kubernetes raise resources.limits.memory",
        "wsl2": "In Windows, in %UserProfile%\\.wslconfig, below [wsl2]: memory=8GB; "
        "then, in PowerShell: wsl --shutdown",
    }.get(
        asking.platform(machine),
        "Take a machine with 8 GB or more; until then: small batches, no cache(), "
        "small shuffle buffers",
    )


def make_room(machine: Machine) -> str:
    """What makes room in memory."""
    if asking.platform(machine) == "windows":
        return "Close what takes much: Task Manager, Details, sorted by Memory"
    if asking.platform(machine) == "macos":
        return "Close what takes much: top -o mem shows it; shut down other notebooks"
    return "Close what takes much: top -o %MEM shows it; shut down other notebooks"


RULES = (swapping, ram)
