"""How fast does the disk under a folder give its data, from itself and from memory?"""

import os
import re
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from perfkit.errors import BadParameterError
from perfkit.machine.limits import amounts_of, text_of
from perfkit.machine.record import Disk

_PIECE_BYTES = 2**20
_MOST_BYTES = 256 * 10**6
# Each way of reading is given this long.
_SECONDS = 1.5
# A folder of a million files takes minutes to list.
_MOST_FILES = 2_000
# Less says nothing: it is read in a moment or two.
_LEAST_BYTES = 4 * 10**6
# Of a file that was read from the disk; what lies in it as a hole is not fetched.
_FETCHED = 0.9
# So WSL mounts the drives of Windows, whatever protocol it uses.
_WINDOWS = "drvfs"


def disk(
    folder: str | Path,
    root: Path = Path("/"),
    clock: Callable[[], float] = time.perf_counter,
) -> Disk:
    """Read files of a folder, then read them again.

    It takes a few seconds at most and changes nothing but what the system keeps in
    memory of these files.

    Args:
        folder: With files of together 4 MB or more, else no speed is given.
        root: As everywhere here.
        clock: Tells seconds.

    Raises:
        BadParameterError: There is no such folder, or it may not be read.
    """
    try:
        folder = Path(folder).expanduser()
        files = list(islice(_files(os.fspath(folder)), _MOST_FILES))
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadParameterError(
            f"{str(folder)!r} cannot be read ({reason}); give a folder that can."
        ) from None
    filesystem, options = _mounted(os.path.realpath(folder), root)
    return Disk(
        cold=_speed(_cold(files, root, clock), clock),
        cached=_speed(_cached(files, clock), clock),
        filesystem=filesystem,
        windows=_WINDOWS in f"{filesystem} {options}",
        file_size=_usual_size(files),
    )


def _usual_size(files: list[str]) -> float | None:
    sizes = []
    for file in files:
        try:
            sizes.append(os.stat(file).st_size)
        except OSError:
            continue
    return float(statistics.median(sizes)) if sizes else None


def _files(folder: str) -> Iterator[str]:
    """Files under a folder, those that lie in it before those of folders in it."""
    inner = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                yield entry.path
            elif entry.is_dir(follow_symlinks=False):
                inner.append(entry.path)
    for path in inner:
        try:
            yield from _files(path)
        except OSError:
            continue


def _speed(
    reads: Iterator[tuple[int, float]], clock: Callable[[], float]
) -> float | None:
    """Bytes per second over as many reads as time allows; None if they are too few."""
    began, size, spent = clock(), 0, 0.0
    for taken, seconds in reads:
        size, spent = size + taken, spent + seconds
        if clock() - began > _SECONDS or size >= _MOST_BYTES:
            break
    return size / spent if size >= _LEAST_BYTES and spent > 0 else None


def _cold(
    files: list[str], root: Path, clock: Callable[[], float]
) -> Iterator[tuple[int, float]]:
    """Bytes and seconds of each file that certainly came from the disk.

    The system is asked to forget a file and need not: what this thread has had fetched
    by then tells whether it did.
    """
    for file in files:
        before = fetched(root)
        if before is None or not forget(file):
            continue
        taken, seconds = _read(file, clock)
        came = came_from_disk(taken, before, root)
        yield (taken, seconds) if came else (0, 0.0)


def _cached(
    files: list[str], clock: Callable[[], float]
) -> Iterator[tuple[int, float]]:
    """The same of each file when it has just been read."""
    for file in files:
        # No further than it came the first time, or the rest would not be in memory.
        yield _read(file, clock, most=_read(file, clock)[0])


def _read(
    file: str, clock: Callable[[], float], most: int = _MOST_BYTES
) -> tuple[int, float]:
    """Read a file and count bytes and seconds; one that is refused has no bytes."""
    start, size, piece = clock(), 0, bytearray(_PIECE_BYTES)
    try:
        with open(file, "rb", buffering=0) as source:
            while size < most and clock() - start < _SECONDS:
                read = source.readinto(piece)
                if not read:
                    break
                size += read
    except OSError:
        pass
    return size, clock() - start


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


def _mounted(folder: str, root: Path) -> tuple[str | None, str]:
    """The kind of file system that a folder lies in, and what it was mounted with."""
    best = -1
    found: tuple[str | None, str] = (None, "")
    for line in text_of(root / "proc/self/mountinfo").splitlines():
        head, _, tail = line.partition(" - ")
        words, kind = head.split(" "), tail.split(" ")
        if len(words) < 6 or not re.fullmatch(r"[\w.-]{1,40} \S+ .+", tail):
            continue
        place = re.sub(r"\\([0-7]{3})", lambda o: chr(int(o[1], 8)), words[4])
        inside = folder == place or folder.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= best:
            best, found = len(place), (kind[0], f"{kind[1]} {kind[2]}")
    return found
