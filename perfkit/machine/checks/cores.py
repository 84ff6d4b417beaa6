"""How much of its cores, its memory and its disk does this machine give a training?"""

from collections.abc import Iterator

from perfkit import units
from perfkit.machine.checks.base import Check, Words, fine, say
from perfkit.machine.record import Load, Machine, Processor

# A quota this near to all cores costs less than can be measured.
_NEARLY_ALL = 0.95
# Other programs that leave nine cores of ten disturb little.
_MUCH = 0.1
_QUOTA = " A quota also stops all threads for the rest of each period."


def granted(machine: Machine) -> Iterator[Check]:
    """A container, a scheduler or an affinity grants fewer cores than there are."""
    share = machine.cores_granted / machine.cores
    words = f"{units.significant(machine.cores_granted)} of {machine.cores} cores"
    limits = limiting(machine)
    may = f"This process may use {words} ({machine.cpu})."
    evidence = " ".join([may, *limits.values()])
    if share >= _NEARLY_ALL:
        yield fine("cores", "All cores may be used", evidence)
        return
    counts = {"all": machine.cores, "last": machine.cores - 1}
    # An affinity that is lifted helps little where a quota stays.
    limit = "quota" if "quota" in limits or not limits else "affinity"
    yield say(
        machine,
        "few-cores",
        evidence,
        cost=0.6 * (1 - share),
        cores=words,
        quota=_QUOTA if "quota" in limits else "",
        remedy=Words(machine, blanks=counts)[f"lift_{limit}"],
    )


def limiting(machine: Machine) -> dict[str, str]:
    """What grants fewer cores than there are, a sentence each: a quota, an affinity."""
    few = _NEARLY_ALL * machine.cores
    quota, affinity = machine.cores_quota, machine.cores_affinity
    limits = {}
    if quota and quota < few:
        limits["quota"] = f"A quota grants the time of {units.significant(quota)}."
    if affinity and affinity < few:
        limits["affinity"] = f"Its affinity names {affinity}."
    return limits


def busy(machine: Machine) -> Iterator[Check]:
    """Other programs keep cores busy that a training would use."""
    load = machine.load or Load()
    if load.others is None:
        return
    free = machine.cores - load.others
    lost = max(0.0, machine.cores_granted - free) / machine.cores_granted
    top = ", ".join(
        f"{program.program} {units.significant(program.cores, 2)}"
        for program in load.top[:3]
    )
    evidence = (
        f"Other programs kept {units.significant(load.others, 2)} of {machine.cores} "
        f"cores busy{f': {top}' if top else ''}."
    )
    if lost < _MUCH:
        yield fine("load", "Other programs leave the cores that may be used", evidence)
    else:
        yield say(machine, "busy-cores", evidence, cost=0.6 * min(1.0, lost))


# There "powersave" follows the load; with every other driver it is the lowest speed.
_FOLLOWS_LOAD = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")


def saving(machine: Machine) -> Iterator[Check]:
    """A battery, or a setting, keeps the cores below their speed."""
    processor = machine.processor or Processor()
    governor, driver = processor.governor, processor.frequency_driver
    if machine.load and machine.load.on_battery:
        yield say(machine, "battery", "The charger is not connected.")
    elif processor.preference == "power":
        evidence = "Its energy performance preference is power."
        yield say(machine, "saving-power", evidence)
    elif governor == "powersave" and driver and driver not in _FOLLOWS_LOAD:
        evidence = f"The governor is {governor}, the driver is {driver}."
        yield say(machine, "saving-power", evidence)


# Importing TensorFlow took 0.6 GB; a model, its input and a notebook come on top.
_LITTLE = 4e9
_LITTLE_FREE = 1.5e9


def memory(machine: Machine) -> Iterator[Check]:
    """Little memory, or little of it left."""
    free = machine.load.memory_free if machine.load else None
    evidence = f"{units.size(machine.memory)} of RAM may be used"
    if machine.memory_present and machine.memory_present > machine.memory:
        evidence += f" of {units.size(machine.memory_present)}"
    evidence += f", {units.size(free)} are free." if free is not None else "."
    if machine.memory < _LITTLE:
        yield say(machine, "little-memory", evidence)
    elif free is not None and free < _LITTLE_FREE:
        yield say(machine, "little-memory-left", evidence)
    else:
        yield fine("memory", "There is memory to work with", evidence)


def windows_drive(machine: Machine) -> Iterator[Check]:
    """A Windows drive seen from WSL is read through a server in between."""
    if machine.disk and machine.disk.windows:
        evidence = f"The folder is on {machine.disk.filesystem or 'a Windows drive'}."
        yield say(machine, "windows-drive", evidence)


RULES = (granted, busy, saving, memory, windows_drive)
