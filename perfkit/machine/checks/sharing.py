"""Does this training have the GPU to itself, and all of it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.machine.checks import asking
from perfkit.machine.checks.asking import Check, fine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.gpu import Gpu, Holder
    from perfkit.machine.record import Disk, Machine


# A desktop and its browser hold a tenth of a small card and rarely work on it.
_MUCH = 0.2
# Where the driver does not say who holds the memory, a desktop may hold more.
_MUCH_OF_UNKNOWN = 0.5
_ALL = 0.9


def others(machine: Machine) -> Iterator[Check]:
    """Another program computes on the GPU, or holds its memory."""
    for place, name, gpu in asking.seen(machine):
        taken, who = _taken(gpu)
        if taken is None and not _worked_on(gpu):
            continue
        if _is_exclusive(gpu) and _computing(gpu):
            # That keeps others out altogether, and is said for itself.
            continue
        evidence = _sentence(name, gpu, taken, who)
        limit = _MUCH if gpu.holders is not None else _MUCH_OF_UNKNOWN
        if (taken or 0) < limit and not _worked_on(gpu):
            yield fine("shared-gpu", "No other program takes much of the GPU", evidence)
            continue
        full = gpu.holders is not None and (taken or 0) >= _ALL
        yield Check(
            id="shared-gpu",
            status="fail" if full else "warn",
            title="Somebody else uses the GPU",
            evidence=evidence,
            why="Two programs take turns on a GPU, and a training that finds less "
            "memory takes slower ways or fails.",
            remedy=_ask(machine, place),
            # Where next to nothing is left, TensorFlow does not start on the GPU.
            cost=0.95 if full else min(0.6, max(taken or 0, gpu.busy or 0)),
        )


def instance(machine: Machine) -> Iterator[Check]:
    """The card is divided into instances: each is a part of its speed."""
    for place, name, gpu in asking.seen(machine):
        if not gpu.state.mig and not gpu.state.instance:
            continue
        part = gpu.state.instance
        memory = f" of {units.size(gpu.memory)}" if gpu.memory else ""
        yield Check(
            id="mig",
            status="warn",
            title="This is a part of a GPU"
            if part
            else "The GPU is divided into parts",
            evidence=f"{name} is an instance{memory}."
            if part
            else f"{name}: MIG is on.",
            why="An instance has a part of the card's multiprocessors and memory, and "
            "a program sees one of them at a time.",
            remedy="Ask for a larger instance, or on a card that nobody else needs: "
            + asking.nvidia_smi(machine, f"-i {place} -mig 0"),
            cost=0.5,
        )


def mode(machine: Machine) -> Iterator[Check]:
    """A card can be set to take one program at a time, or none."""
    for place, name, gpu in asking.seen(machine):
        chosen = gpu.state.compute_mode or ""
        remedy = asking.nvidia_smi(machine, f"-i {place} -c DEFAULT")
        evidence = f"{name}: its compute mode is {chosen}."
        if chosen == "prohibited":
            yield Check(
                id="no-computing",
                status="fail",
                title="The GPU is set to compute for nobody",
                evidence=evidence,
                why="TensorFlow trains on the processor alone.",
                remedy=remedy,
                cost=1.0,
            )
        elif _is_exclusive(gpu):
            yield _exclusive(gpu, evidence, remedy)


def _exclusive(gpu: Gpu, evidence: str, remedy: str) -> Check:
    strangers = _computing(gpu)
    by = f" {strangers[0].program} has it now." if strangers else ""
    return Check(
        id="exclusive-gpu",
        status="fail" if strangers else "warn",
        title="The GPU takes one program at a time",
        evidence=evidence + by,
        why="A second program, or a notebook that is still open, finds no GPU.",
        remedy=remedy,
        cost=0.97 if strangers else 0.3,
    )


def _is_exclusive(gpu: Gpu) -> bool:
    return (gpu.state.compute_mode or "").startswith("exclusive")


def _computing(gpu: Gpu) -> list[Holder]:
    """The programs of others that compute on it."""
    return [one for one in gpu.holders or () if one.computes and not one.own]


def _taken(gpu: Gpu) -> tuple[float | None, tuple[str, ...]]:
    """The share of memory that others hold, and their names; None if not known."""
    if not gpu.memory:
        return None, ()
    if gpu.holders is None:
        return gpu.memory_used and gpu.memory_used / gpu.memory, ()
    strangers = [holder for holder in gpu.holders if not holder.own]
    held = [holder.memory for holder in strangers if holder.memory is not None]
    names = tuple(dict.fromkeys(holder.program for holder in strangers))
    return sum(held) / gpu.memory, names


def _worked_on(gpu: Gpu) -> bool:
    own = any(holder.own for holder in gpu.holders or ())
    return gpu.busy is not None and gpu.busy >= _MUCH and not own


def _sentence(name: str, gpu: Gpu, taken: float | None, who: tuple[str, ...]) -> str:
    by = f" by {', '.join(who)}" if who else ""
    facts = []
    if taken is not None:
        facts.append(f"{units.percent(taken)} of its memory is taken{by}")
    if gpu.busy is not None:
        facts.append(f"it is busy {units.percent(gpu.busy)} of the time")
    return f"{name}: {' and '.join(facts)}."


def _ask(machine: Machine, place: str) -> str:
    if asking.platform(machine) in ("wsl2", "windows"):
        return "Close what draws or computes: Task Manager, Details, column GPU."
    return f"nvidia-smi -i {place}; then end what need not run, or take another GPU"


SHARING = (others, instance, mode)


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
        yield Check(
            id="windows-drive",
            status="warn",
            title="This folder lies on a Windows drive, which WSL reads slowly",
            evidence=f"The folder is on {machine.disk.filesystem or 'a Windows drive'}"
            f"{_speeds(machine.disk)}.",
            why="Each file is asked for through Windows; many small ones take long.",
            remedy='Copy it into WSL and read it there: cp -r "/mnt/c/FOLDER" ~/data',
            cost=0.5,
        )


def slow(machine: Machine) -> Iterator[Check]:
    """A disk that gives fewer images than a training takes."""
    disk = machine.disk
    if disk is None or disk.windows or disk.cold is None:
        return
    each = disk.file_size or _PHOTOGRAPH
    small = bool(disk.file_size) and each < _LARGE
    files = units.significant(disk.cold / each)
    evidence = f"The folder is on {disk.filesystem or 'a disk'}{_speeds(disk)}."
    if disk.cold >= _SLOW or (small and disk.cold / each >= _ENOUGH_FILES):
        yield fine(
            "disk", f"This folder is read at {units.size(disk.cold)}/s", evidence
        )
        return
    if small:
        yield Check(
            id="slow-disk",
            status="warn",
            title=f"This folder's many small files are read slowly: {files} files/s",
            evidence=evidence,
            why=f"Each file of about {units.size(each)} is asked for by itself, which "
            "takes longer than to read it, on a fast disk or SSD as well.",
            remedy="Put the files into one record file: tf.io.TFRecordWriter",
            cost=0.5 * (1 - disk.cold / each / _ENOUGH_FILES),
        )
        return
    network = (disk.filesystem or "").lower().startswith(_NETWORK)
    yield Check(
        id="slow-disk",
        status="warn",
        title="This folder lies on a slow network drive"
        if network
        else "This folder lies on a slow disk",
        evidence=evidence,
        why=f"That is at most {files} files of {units.size(each)} per second in the "
        "first epoch, and in every one if they do not fit into memory.",
        remedy="Copy the folder to a local SSD, or keep it in memory: dataset.cache()",
        cost=0.5 * (1 - disk.cold / _SLOW),
    )


def _speeds(disk: Disk) -> str:
    """How fast it was read, for a sentence's end; "" if it was not."""
    facts = []
    if disk.cold is not None:
        facts.append(f"{units.size(disk.cold)}/s from the disk")
    if disk.cached is not None:
        facts.append(f"{units.size(disk.cached)}/s from memory")
    return f", read at {' and '.join(facts)}" if facts else ""


DISK = (windows_drive, slow)
