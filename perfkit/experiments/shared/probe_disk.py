"""How fast does the disk under the data give its bytes, when memory holds none of them?

The system keeps what was read in memory. It is asked to forget the files before each
pass over them, and whether it did is looked at: what the disk has given to this thread
is counted. A host below a virtual machine may keep a copy that nobody here can see.
"""

from __future__ import annotations

import functools
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.errors import RunError
from perfkit.experiments.shared import cache
from perfkit.experiments.shared.probe import Probe
from perfkit.machine import disk
from perfkit.measure.tick import READY, Note, Pause, every

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from perfkit.measure.tick import Yielded

_CHUNK = 1 << 20
_OWN = 256 * _CHUNK
_FOLDER, _FILE = "to-read-256", "random.bin"
# Names that are looked at, in a folder that may hold millions.
_LOOKED_AT = 20_000
_SMALLEST = 4096
_SAMPLE = 4 * _CHUNK
NAME = "data disk"
FORGETTING = "making the system forget the files"
COLD = "from the disk: memory had forgotten it"
CACHED = "maybe from memory: it does not forget here"


def files(folder: str) -> tuple[str, ...]:
    """The files to read: the largest of a folder, or one that ``made`` wrote."""
    if not folder:
        return (str(cache.folder() / _FOLDER / _FILE),)
    found, size = list[str](), 0
    for length, path in sorted(_looked_at(Path(folder).expanduser()), reverse=True):
        if size >= _OWN:
            break
        found.append(path)
        size += length
    return tuple(found)


def made(folder: str) -> Generator[Note, None, tuple[str, ...]]:
    """Write a file of random bytes where no folder is given; give what to read.

    Raises:
        MissingPartError: There is no room for it.
        RunError: The folder holds nothing that is worth reading.
    """
    if not folder:
        yield from cache.made(_FOLDER, _write, size=_OWN, what="a file to read")
    found = files(folder)
    if not found:
        raise RunError(
            "The folder holds no file of 4 KB or more that can be read; give the one "
            "that holds your data, or none to read a file that is made for it."
        )
    return found


def forgets(paths: Sequence[str]) -> bool:
    """Whether the system can be made to forget these files."""
    before = disk.fetched()
    if before is None or not disk.forget(paths[0]):
        return False
    with open(paths[0], "rb", buffering=0) as file:
        taken = file.readinto(bytearray(_SAMPLE))
    return disk.came_from_disk(taken or 0, before)


def read(folder: str) -> Iterator[Yielded]:
    """Read the files from begin to end, over and over, each time forgotten before."""
    paths = files(folder)
    yield READY
    yield from every(_passes(paths))


def probe(folder: str) -> Probe:
    """Reading the data; ``what`` is completed once it is known whether it is cold."""
    return Probe(
        name=NAME,
        group="disk",
        unit="B",
        what="reading",
        work=functools.partial(read, folder),
    )


def _passes(paths: Sequence[str]) -> Iterator[Any]:
    buffer = bytearray(_CHUNK)
    while True:
        for path in paths:
            disk.forget(path)
        yield Pause(FORGETTING)
        for path in paths:
            with open(path, "rb", buffering=0) as file:
                while count := file.readinto(buffer):
                    yield count


def _looked_at(folder: Path) -> Iterator[tuple[int, str]]:
    seen = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            seen += 1
            if seen > _LOOKED_AT:
                return
            path = os.path.join(parent, name)
            if os.path.isfile(path) and os.access(path, os.R_OK):
                size = os.path.getsize(path)
                if size >= _SMALLEST:
                    yield size, path


def _write(folder: Path) -> Iterator[Note]:
    yield Note("progress", f"Writing {units.size(_OWN)} to read from the disk")
    # Random, so that no file system can make it smaller.
    with open(folder / _FILE, "wb") as file:
        for _ in range(_OWN // _CHUNK):
            file.write(secrets.token_bytes(_CHUNK))
        file.flush()
        os.fsync(file.fileno())
