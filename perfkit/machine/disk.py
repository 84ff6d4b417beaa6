"""How fast does the disk under a folder give its data, from itself and from memory?"""

from __future__ import annotations

import os
import re
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.errors import BadParameterError
from perfkit.machine.files import text_of
from perfkit.machine.record import Disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PIECE_BYTES = 2**20
_MOST_BYTES = 256 * 10**6
# Each way of reading is given this long.
_SECONDS = 1.5
# A folder of a million files takes minutes to list.
_MOST_FILES = 2_000
# Less says nothing: it is read in a moment or two.
_LEAST_BYTES = 4 * 10**6
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
        root: The folder that holds ``proc``.
        clock: Tells seconds.

    Raises:
        BadParameterError: There is no such folder, or it may not be read.
    """
    folder = Path(folder).expanduser()
    try:
        files = list(islice(_files(os.fspath(folder)), _MOST_FILES))
    except OSError as error:
        raise BadParameterError(
            f"{folder} cannot be read ({error.strerror}); give a folder that can."
        ) from None
    filesystem, options = _mounted(os.path.realpath(folder), root)
    cold, read = _speed(files, _forget, clock)
    return Disk(
        cold=cold,
        cached=_speed(read or files, _keep, clock)[0],
        filesystem=filesystem,
        windows=_WINDOWS in f"{filesystem} {options}",
    )


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
    files: list[str], ready: Callable[[str], bool], clock: Callable[[], float]
) -> tuple[float | None, list[str]]:
    """Bytes per second over as many files as time allows, and which these were.

    Args:
        files: To be read, in this order.
        ready: Prepares one, outside the time that counts; False leaves it out.
        clock: Tells seconds.
    """
    began, spent, size, read = clock(), 0.0, 0, list[str]()
    for file in files:
        if clock() - began > _SECONDS or size >= _MOST_BYTES:
            break
        if ready(file):
            start = clock()
            size += _read(file, _MOST_BYTES - size)
            spent += clock() - start
            read.append(file)
    return (size / spent if size >= _LEAST_BYTES and spent > 0 else None), read


def _read(file: str, most: int) -> int:
    """Read a file and count its bytes; one that is refused has none."""
    size, piece = 0, bytearray(_PIECE_BYTES)
    try:
        with open(file, "rb", buffering=0) as source:
            while size < most and (read := source.readinto(piece)):
                size += read
    except OSError:
        return size
    return size


def _keep(file: str) -> bool:
    """Bring a file into memory."""
    return _read(file, _MOST_BYTES) > 0


def _forget(file: str) -> bool:
    """Let the system drop what it keeps of a file; whether it certainly did."""
    if not hasattr(os, "posix_fadvise") or not hasattr(os, "RWF_NOWAIT"):
        return False
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except OSError:
        return False
    try:
        # What was just written cannot be dropped before it is on the disk.
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return _is_cold(descriptor)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _is_cold(descriptor: int) -> bool:
    """Whether reading would have to wait for the disk, at the start and further on."""
    size = os.fstat(descriptor).st_size
    places = {0, size // 2 // 4096 * 4096, max(0, size - 1) // 4096 * 4096}
    return size > 0 and not any(_is_kept(descriptor, place) for place in places)


def _is_kept(descriptor: int, place: int) -> bool:
    try:
        return os.preadv(descriptor, [bytearray(1)], place, os.RWF_NOWAIT) > 0
    except BlockingIOError:
        return False


def _mounted(folder: str, root: Path) -> tuple[str | None, str]:
    """The kind of file system that a folder lies in, and what it was mounted with."""
    best = -1
    found: tuple[str | None, str] = (None, "")
    for line in text_of(root / "proc/self/mountinfo").splitlines():
        head, _, tail = line.partition(" - ")
        words, kind = head.split(" "), tail.split(" ")
        if len(words) < 6 or len(kind) < 3:
            continue
        place = re.sub(r"\\([0-7]{3})", lambda o: chr(int(o[1], 8)), words[4])
        inside = folder == place or folder.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= best:
            best, found = len(place), (kind[0][:40], f"{kind[1]} {kind[2]}")
    return found
