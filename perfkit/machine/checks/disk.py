"""Do the data lie where they can be read fast?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.machine.check import Check, fine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.record import Disk, Machine

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


RULES = (windows_drive, slow)
