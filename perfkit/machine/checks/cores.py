"""How much of its cores, its memory and its disk does this machine give a training?"""

from collections.abc import Iterator

from perfkit import units
from perfkit.machine.checks.base import Check, Words, fine, say
from perfkit.machine.record import Disk, Load, Machine, Processor

# A quota this near to all cores costs less than can be measured.
_NEARLY_ALL = 0.95
# Other programs that leave nine cores of ten disturb little.
_MUCH = 0.1
# A quiet virtual machine loses well below one per cent.
_STOLEN = 0.05
_QUOTA = " A quota also stops all threads for the rest of each period."


def granted(machine: Machine) -> Iterator[Check]:
    """A container, a scheduler or an affinity grants fewer cores than there are."""
    share = machine.cores_granted / machine.cores
    words = f"{units.significant(machine.cores_granted)} of {machine.cores} cores"
    limits = limiting(machine)
    may = f"This process may use {words} ({machine.cpu})."
    evidence = " ".join([may, *limits.values()])
    if share >= _NEARLY_ALL:
        every = "All cores" if share >= 1 else "Nearly all cores"
        yield fine("cores", f"{every} may be used", evidence)
        return
    counts = {"all": machine.cores, "last": machine.cores - 1}
    # What lifts each limit; what would lift either, where none is known.
    key = f"lift_{next(iter(limits))}" if len(limits) == 1 else "lift_both"
    yield say(
        machine,
        "few-cores",
        evidence,
        cost=0.6 * (1 - share),
        cores=words,
        quota=_QUOTA if "quota" in limits else "",
        remedy=Words(machine, given=counts)[key],
    )


def limiting(machine: Machine) -> dict[str, str]:
    """What grants fewer cores than there are, a sentence each: a quota, an affinity.

    Nothing where nothing does, or where the record is older and does not say what.
    """
    few = _NEARLY_ALL * machine.cores
    quota, affinity = machine.cores_quota, machine.cores_affinity
    found = {}
    if quota and quota < few:
        found["quota"] = f"A quota grants the time of {units.significant(quota)}."
    if affinity and affinity < few:
        found["affinity"] = f"Its affinity names {affinity}."
    return found


def busy(machine: Machine) -> Iterator[Check]:
    """Other programs keep cores busy that a training would use."""
    load = machine.load or Load()
    if load.others is None:
        return
    free = machine.cores - load.others
    lost = max(0.0, machine.cores_granted - free) / machine.cores_granted
    top = ", ".join(
        f"{one.program} {units.significant(one.cores, 2)}" for one in load.top[:3]
    )
    evidence = (
        f"Other programs kept {units.significant(load.others, 2)} of {machine.cores} "
        f"cores busy{f': {top}' if top else ''}."
    )
    if lost < _MUCH:
        yield fine("load", "Other programs leave the cores that may be used", evidence)
    else:
        yield say(machine, "busy-cores", evidence, cost=0.6 * min(1.0, lost))


def stolen(machine: Machine) -> Iterator[Check]:
    """The hypervisor gives this machine's time to others."""
    steal = (machine.load or Load()).steal or 0.0
    if steal >= _STOLEN:
        evidence = f"{units.percent(steal)} of the time went to other machines."
        yield say(machine, "stolen-time", evidence, cost=min(0.6, 1.5 * steal))


CORES = (granted, busy, stolen)


_LOWEST = "powersave"
# There "powersave" follows the load; with every other driver it is the lowest speed.
_FOLLOWS_LOAD = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
# Rounding, and the one core that may go a little higher than the others.
_NEARLY = 0.95


def governor(machine: Machine) -> Iterator[Check]:
    """A governor can keep the cores at their lowest frequency."""
    processor = machine.processor or Processor()
    chosen, driver = processor.governor, processor.frequency_driver
    if chosen is None:
        return
    evidence = f"The governor is {chosen}, the driver is {driver or 'unknown'}."
    if chosen != _LOWEST or driver in _FOLLOWS_LOAD:
        title = "The governor does not keep the cores at their lowest speed"
        yield fine("governor", title, evidence)
    else:
        yield say(machine, "governor" if driver else "unknown-governor", evidence)


def limited(machine: Machine) -> Iterator[Check]:
    """Somebody set a highest frequency below what the cores can reach."""
    processor = machine.processor or Processor()
    highest, allowed = processor.frequency_max, processor.frequency_allowed
    if highest is None or allowed is None or allowed >= _NEARLY * highest:
        return
    there, most = (f"{units.significant(hz / 1e9)} GHz" for hz in (allowed, highest))
    yield say(
        machine,
        "limited-frequency",
        f"{there} are allowed of {most}.",
        cost=0.6 * (1 - allowed / highest),
        megahertz=f"{highest / 1e6:.0f}",
    )


def saving(machine: Machine) -> Iterator[Check]:
    """The processor was asked to save power before all else."""
    if machine.processor and machine.processor.preference == "power":
        evidence = "Its energy performance preference is power."
        yield say(machine, "saving-power", evidence)


def battery(machine: Machine) -> Iterator[Check]:
    """A laptop on its battery saves power."""
    on_battery = (machine.load or Load()).on_battery
    if on_battery:
        yield say(machine, "battery", "The charger is not connected.")
    elif on_battery is not None:
        yield fine("battery", "The laptop runs on mains", "The charger is connected.")


FREQUENCY = (governor, limited, saving, battery)


# Importing TensorFlow took 0.6 GB; a model, its input and a notebook come on top.
_LITTLE = 4e9
_LITTLE_FREE = 1.5e9
# Systems move what nobody uses to disk in good time: only both together are trouble.
_SWAPPED = 0.05
_TIGHT = 0.15


def swapping(machine: Machine) -> Iterator[Check]:
    """Much lies in swap while little RAM is free: pages go to and fro."""
    load = machine.load or Load()
    if load.swap is None or load.memory_free is None:
        return
    evidence = (
        f"{units.size(load.swap)} lie in swap, {units.size(load.memory_free)} of "
        f"{units.size(machine.memory)} are free."
    )
    much = load.swap >= _SWAPPED * machine.memory
    if much and load.memory_free < _TIGHT * machine.memory:
        yield say(machine, "swapping", evidence)
    else:
        yield fine("swap", "Memory stays in RAM", evidence)


def ram(machine: Machine) -> Iterator[Check]:
    """Little memory, or little of it left."""
    free = (machine.load or Load()).memory_free
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


MEMORY = (swapping, ram)


# Photographs of about 100 KB: at this speed 2,000 a second, which small models want.
_SLOW = 200e6
_PHOTOGRAPH = 100e3
_ENOUGH_FILES = _SLOW / _PHOTOGRAPH
# Smaller files are slow for their number, whatever the disk is.
_LARGE = 1e6
_NETWORK = ("nfs", "cifs", "smb", "sshfs", "fuse", "9p", "drvfs", "lustre", "ceph")


def windows_drive(machine: Machine) -> Iterator[Check]:
    """A Windows drive seen from WSL is read through a server in between."""
    if machine.disk and machine.disk.windows:
        evidence = _read(machine.disk, "a Windows drive")
        yield say(machine, "windows-drive", evidence)


def slow(machine: Machine) -> Iterator[Check]:
    """A disk that gives fewer images than a training takes."""
    disk = machine.disk
    if disk is None or disk.windows or disk.cold is None:
        return
    each = disk.file_size or _PHOTOGRAPH
    small, rate = bool(disk.file_size) and each < _LARGE, disk.cold / each
    evidence = _read(disk, "a disk")
    if disk.cold >= _SLOW or (small and rate >= _ENOUGH_FILES):
        title = f"This folder is read at {units.size(disk.cold)}/s"
        yield fine("disk", title, evidence)
        return
    network = (disk.filesystem or "").lower().startswith(_NETWORK)
    yield say(
        machine,
        "slow-files" if small else "slow-disk",
        evidence,
        cost=0.5 * (1 - (rate / _ENOUGH_FILES if small else disk.cold / _SLOW)),
        files=units.significant(rate),
        size=units.size(each),
        disk="network drive" if network else "disk",
    )


def _read(disk: Disk, otherwise: str) -> str:
    """Where the folder is, and how fast it was read if it was."""
    speeds = {"from the disk": disk.cold, "from memory": disk.cached}
    facts = [
        f"{units.size(b)}/s {where}" for where, b in speeds.items() if b is not None
    ]
    read = f", read at {' and '.join(facts)}" if facts else ""
    return f"The folder is on {disk.filesystem or otherwise}{read}."


DISK = (windows_drive, slow)
