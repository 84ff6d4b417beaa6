"""Which environment variables that are set here cost speed?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.machine.check import Check
from perfkit.machine.checks import remedies, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.checks.settings import Setting
    from perfkit.machine.record import Machine

_THREADS = {
    "TF_NUM_INTRAOP_THREADS": (
        "TensorFlow computes one operation on that many cores, and leaves the others.",
        0.4,
    ),
    "TF_NUM_INTEROP_THREADS": (
        "TensorFlow runs that many operations at a time; one waits for the other.",
        0.1,
    ),
    "OMP_NUM_THREADS": (
        "NumPy and others that feed the training use that many cores; TensorFlow "
        "itself does not ask for it.",
        0.1,
    ),
}
# Operations rarely wait for more than a few others.
_ENOUGH = {"TF_NUM_INTEROP_THREADS": 2}


def costly(machine: Machine) -> Iterator[Check]:
    """Settings that are meant for debugging, or that turn something fast off."""
    for setting in settings.COSTLY:
        value = machine.environment.get(setting.variable)
        if value is None or not setting.costs(value.strip()):
            continue
        if setting.applies(machine):
            yield _costs(machine, setting, value)


def threads(machine: Machine) -> Iterator[Check]:
    """Fewer threads than cores."""
    for variable, (why, cost) in _THREADS.items():
        value = machine.environment.get(variable, "").strip()
        enough = min(_useful(machine), _ENOUGH.get(variable, machine.cores))
        if not value.isdecimal() or not 0 < int(value) < enough:
            continue
        yield Check(
            id="few-threads",
            status="warn",
            title=f"{variable} allows fewer threads than there are cores",
            evidence=f"{variable} is {value}; this process may use "
            f"{machine.cores_granted:g} cores.",
            why=why,
            remedy=remedies.without(machine, variable),
            cost=cost * (1 - int(value) / enough),
        )


def late(machine: Machine) -> Iterator[Check]:
    """A variable that is set after TensorFlow was loaded does nothing."""
    names = machine.software.set_late if machine.software else ()
    if names:
        yield Check(
            id="set-too-late",
            status="warn",
            title="Variables were set when TensorFlow was loaded already",
            evidence=f"Set too late: {', '.join(names)}.",
            why="TensorFlow reads them once, as it is loaded: the speed is as if they "
            "were not set.",
            remedy=f'os.environ["{names[0]}"] = ... in the first cell, above import '
            "tensorflow; then restart the kernel and run all",
            cost=0.2,
        )


def _costs(machine: Machine, setting: Setting, value: str) -> Check:
    return Check(
        id=setting.id,
        status=setting.status,
        title=setting.title,
        evidence=f"{setting.variable} is {value}.",
        why=setting.why,
        remedy=remedies.without(machine, setting.variable),
        cost=setting.cost,
    )


def _useful(machine: Machine) -> int:
    """Threads that fill the cores: two on one core are a matter of taste."""
    physical = machine.processor.physical_cores if machine.processor else None
    return int(min(machine.cores_granted, physical or machine.cores))


RULES = (costly, threads, late)
