"""Where does a folder lie, and what does the system keep of its files in memory?"""

import os
from pathlib import Path

import psutil

from perfkit.errors import BadParameterError
from perfkit.machine.limits import amounts_of, call_or_none
from perfkit.machine.record import Disk

# Of a file that was read from the disk; what lies in it as a hole is not fetched.
_FETCHED = 0.9
# So WSL mounts the drives of Windows, whatever protocol it uses.
_WINDOWS = "drvfs"


def disk(folder: str | Path) -> Disk:
    """Say which kind of file system a folder lies on.

    Raises:
        BadParameterError: There is no such folder, or it may not be read.
    """
    try:
        place = os.path.realpath(Path(folder).expanduser(), strict=True)
        os.scandir(place).close()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadParameterError(
            f"{str(folder)!r} cannot be read ({reason}); give a folder that can."
        ) from None
    mounts = call_or_none(lambda: psutil.disk_partitions(all=True)) or []
    above = [one for one in mounts if Path(place).is_relative_to(one.mountpoint)]
    mount = max(above, key=lambda one: len(one.mountpoint), default=None)
    if mount is None:
        return Disk()
    windows = _WINDOWS in f"{mount.fstype} {mount.opts}"
    return Disk(filesystem=mount.fstype or None, windows=windows)


def forget(file: str) -> bool:
    """Ask the system to drop what it keeps of a file; whether it can be asked."""
    if not hasattr(os, "posix_fadvise"):
        return False
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except OSError:
        return False
    try:
        # What was just written cannot be dropped before it is on the disk.
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def fetched(root: Path = Path("/")) -> int | None:
    """Bytes that disks have given to this thread so far; None where nobody counts."""
    return amounts_of(root / "proc/thread-self/io").get("read_bytes")


def came_from_disk(taken: int, before: int, root: Path = Path("/")) -> bool:
    """Whether what this thread just read was fetched, and did not lie in memory.

    It read so many bytes, and ``before`` is what ``fetched`` said before that.
    """
    return (fetched(root) or 0) - before >= _FETCHED * taken
