"""How much of its cores does this machine give to a training?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.machine.checks import asking
from perfkit.machine.checks.asking import Check, fine

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from perfkit.machine.record import Machine


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
    evidence = " ".join(
        [f"This process may use {words} ({machine.cpu}).", *limits.values()]
    )
    if share >= _NEARLY_ALL:
        every = "All cores" if share >= 1 else "Nearly all cores"
        yield fine("cores", f"{every} may be used", evidence)
        return
    yield Check(
        id="few-cores",
        status="warn",
        title=f"Only {words} may be used",
        evidence=evidence,
        why="What could fill more cores, such as decoding images or a training on the "
        f"processor, takes longer.{_QUOTA if 'quota' in limits else ''}",
        remedy=_more_cores(machine, limits),
        cost=0.6 * (1 - share),
    )


def busy(machine: Machine) -> Iterator[Check]:
    """Other programs keep cores busy that a training would use."""
    load = machine.load
    if load is None or load.others is None:
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
        return
    yield Check(
        id="busy-cores",
        status="warn",
        title="Other programs keep the cores busy",
        evidence=evidence,
        why="A training shares the cores with them, and two measurements differ by "
        "what they happened to do.",
        remedy=_quiet(machine),
        cost=0.6 * min(1.0, lost),
    )


def stolen(machine: Machine) -> Iterator[Check]:
    """The hypervisor gives this machine's time to others."""
    steal = machine.load.steal if machine.load else None
    if steal is not None and steal >= _STOLEN:
        yield Check(
            id="stolen-time",
            status="warn",
            title="Other virtual machines take the processor's time",
            evidence=f"{units.percent(steal)} of the time went to other machines.",
            why="All that runs on the processor takes longer, now more, now less.",
            remedy="Take a machine type with cores of its own, or start this one "
            "again: it may come up on a quieter host",
            cost=min(0.6, 1.5 * steal),
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


def _more_cores(machine: Machine, limits: Collection[str]) -> str:
    """What lifts each limit; what would lift either, where none is known."""
    last = machine.cores - 1
    remedies = {
        "quota": "systemctl set-property UNIT CPUQuota=; or, under Slurm: "
        "--cpus-per-task",
        "affinity": f"taskset -cp 0-{last} $$ before Python starts; or, under Slurm: "
        "sbatch --cpus-per-task",
    }
    if asking.platform(machine) == "container":
        remedies = {
            "quota": f"On the host: docker update --cpus {machine.cores} CONTAINER; "
            "or, in Kubernetes: raise resources.limits.cpu",
            "affinity": f"On the host: docker update --cpuset-cpus 0-{last} CONTAINER",
        }
    if len(limits) == 1:
        return remedies[next(iter(limits))]
    return f"For a quota: {remedies['quota']}. For an affinity: {remedies['affinity']}"


def _quiet(machine: Machine) -> str:
    if asking.platform(machine) == "windows":
        return "End what need not run: Task Manager, Details, sorted by CPU"
    return (
        "End what need not run: top -o %CPU shows it"
        if _linux(machine)
        else ("End what need not run: top -o cpu shows it")
    )


def _linux(machine: Machine) -> bool:
    return asking.platform(machine) in ("linux", "container", "wsl1", "wsl2")


CORES = (granted, busy, stolen)


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


FREQUENCY = (governor, limited, saving, battery)


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


MEMORY = (swapping, ram)
