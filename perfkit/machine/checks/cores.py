"""How much of its cores does this machine give to a training?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.machine.check import Check, fine
from perfkit.machine.checks import asking

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


RULES = (granted, busy, stolen)
