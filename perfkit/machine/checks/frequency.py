"""Do the cores run as fast as they can, or does something hold them back?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.machine.check import Check, fine
from perfkit.machine.checks import asking

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.record import Machine

_WHY = "Everything on the processor is slower: input, launches, training."
_LOWEST = "powersave"
# There "powersave" follows the load; with every other driver it is the lowest speed.
_FOLLOWS_LOAD = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
# Rounding, and the one core that may go a little higher than the others.
_NEARLY = 0.95
_PREFERENCES = "/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference"


def governor(machine: Machine) -> Iterator[Check]:
    """A governor can keep the cores at their lowest frequency."""
    processor = machine.processor
    if processor is None or processor.governor is None:
        return
    driver = processor.frequency_driver
    evidence = (
        f"The governor is {processor.governor}, the driver is {driver or 'unknown'}."
    )
    if processor.governor != _LOWEST or driver in _FOLLOWS_LOAD:
        title = "The governor does not keep the cores at their lowest speed"
        yield fine("governor", title, evidence)
        return
    yield Check(
        id="governor",
        status="warn" if driver else "unknown",
        title=f"The cores {'are' if driver else 'may be'} kept at their lowest speed",
        evidence=evidence,
        why=_WHY,
        remedy=_typed(machine, "sudo cpupower frequency-set -g performance"),
        cost=0.5 if driver else 0.0,
    )


def limited(machine: Machine) -> Iterator[Check]:
    """Somebody set a highest frequency below what the cores can reach."""
    processor = machine.processor
    highest = processor.frequency_max if processor else None
    allowed = processor.frequency_allowed if processor else None
    if highest is None or allowed is None or allowed >= _NEARLY * highest:
        return
    command = f"sudo cpupower frequency-set -u {highest / 1e6:.0f}MHz"
    yield Check(
        id="limited-frequency",
        status="warn",
        title="The cores may not run at their full frequency",
        evidence=f"{_gigahertz(allowed)} are allowed of {_gigahertz(highest)}.",
        why=_WHY,
        remedy=_typed(machine, command),
        cost=0.6 * (1 - allowed / highest),
    )


def saving(machine: Machine) -> Iterator[Check]:
    """The processor was asked to save power before all else."""
    if machine.processor and machine.processor.preference == "power":
        yield Check(
            id="saving-power",
            status="warn",
            title="The processor is asked to save power",
            evidence="Its energy performance preference is power.",
            why=_WHY,
            remedy=_typed(machine, f"echo performance | sudo tee {_PREFERENCES}"),
            cost=0.2,
        )


def battery(machine: Machine) -> Iterator[Check]:
    """A laptop on its battery saves power."""
    on_battery = machine.load.on_battery if machine.load else None
    if on_battery is None:
        return
    if not on_battery:
        yield fine("battery", "The laptop runs on mains", "The charger is connected.")
        return
    yield Check(
        id="battery",
        status="warn",
        title="The laptop runs on its battery",
        evidence="The charger is not connected.",
        why="Processor and GPU are kept at low power, and it changes as you measure.",
        remedy="Connect the charger that came with it, and choose the performance mode "
        "in the system's power settings",
        cost=0.45,
    )


def _typed(machine: Machine, command: str) -> str:
    on_host = "On the host: " if asking.platform(machine) == "container" else ""
    return on_host + command


def _gigahertz(hertz: float) -> str:
    return f"{units.significant(hertz / 1e9)} GHz"


RULES = (governor, limited, saving, battery)
