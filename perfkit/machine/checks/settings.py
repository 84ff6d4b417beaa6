"""Which environment variables cost speed here?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perfkit.machine.checks.asking import Check, numbers, say, statements
from perfkit.machine.record import Processor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.machine.record import Machine


_AMPERE = (8, 0)
# What a value is when it is set so; other words are looked for as they are.
_WHEN = {
    "on": r"(?i)^(1|true|yes|on)$",
    "off": r"(?i)^(0|false|no|off)$",
    "quiet": r"^0*([2-9]|[1-9]\d+)$",
}


def _tf32(machine: Machine) -> bool:
    known = (gpu.compute_capability for gpu in machine.gpus)
    return any(numbers(capability) >= _AMPERE for capability in known if capability)


def _processor(machine: Machine) -> bool:
    """Whether trainings run on an Intel or AMD processor alone."""
    instructions = (machine.processor or Processor()).instructions
    return not machine.gpus and "avx2" in (instructions or ("avx2",))


_WHERE: dict[str, Callable[[Machine], bool]] = {
    "everywhere": lambda machine: True,
    "gpu": lambda machine: bool(machine.gpus),
    "tf32": _tf32,
    "processor": _processor,
}


def costly(machine: Machine) -> Iterator[Check]:
    """Settings that are meant for debugging, or that turn something fast off."""
    for key in statements()["settings"]:
        setting = statements()[key]
        value = machine.environment.get(setting["variable"])
        when = _WHEN.get(setting["when"], setting["when"])
        if value is None or not re.search(when, value.strip()):
            continue
        if _WHERE[setting["where"]](machine):
            yield say(machine, key, f"{setting['variable']} is {value}.")


def threads(machine: Machine) -> Iterator[Check]:
    """Fewer threads than cores."""
    # Two threads on one core are a matter of taste.
    physical = (machine.processor or Processor()).physical_cores
    useful = int(min(machine.cores_granted, physical or machine.cores))
    for variable, said in statements()["threads"].items():
        value = machine.environment.get(variable, "").strip()
        enough = min(useful, said.get("enough", machine.cores))
        if not value.isdecimal() or not 0 < int(value) < enough:
            continue
        yield say(
            machine,
            "few-threads",
            f"{variable} is {value}; this process may use "
            f"{machine.cores_granted:g} cores.",
            cost=said["cost"] * (1 - int(value) / enough),
            variable=variable,
            why=said["why"],
        )


def late(machine: Machine) -> Iterator[Check]:
    """A variable that is set after TensorFlow was loaded does nothing."""
    names = machine.software.set_late if machine.software else ()
    if names:
        evidence = f"Set too late: {', '.join(names)}."
        yield say(machine, "set-too-late", evidence, name=names[0])


RULES = (costly, threads, late)
