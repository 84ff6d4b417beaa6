"""A process that reads the user's files and writes to copies of its own.

Where Linux lets a process have its own view of the file system, folders are covered by
a layer that belongs to that process: it sees what lies below, and what it writes lands
in the layer and goes with it. Nothing in the script has to be changed for that, and
libraries in other languages are held as well.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# From <linux/sched.h> and <sys/mount.h>.
_NEW_USERS, _NEW_MOUNTS = 0x10000000, 0x00020000
_NO_SETUID, _NO_DEVICES = 2, 4


def contain(folders: Iterable[Path], also: Iterable[Path] = ()) -> None:
    """Cover these folders, for this process and all that it starts.

    To be called before the process has a second thread.

    Args:
        folders: To be covered in any case.
        also: To be covered where that is possible.

    Raises:
        OSError: This system does not allow it.
    """
    where = os.getcwd()
    _own_view()
    for folder in covered([*folders, *(one for one in also if not _hinders(one))]):
        _cover(folder)
    # A process stays in the folder that it was in, below the layer.
    os.chdir(where)


def covered(folders: Iterable[Path]) -> list[Path]:
    """The outermost of these folders, links followed."""
    real = sorted({Path(os.path.realpath(folder)) for folder in folders})
    return [one for one in real if not any(p in one.parents for p in real)]


def _own_view() -> None:
    user, group = os.getuid(), os.getgid()
    _call("unshare", _NEW_USERS | _NEW_MOUNTS)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _cover(folder: Path) -> None:
    if why := _hinders(folder):
        raise OSError(why)
    layer = Path(tempfile.mkdtemp(prefix="perfkit-layer-"))
    (layer / "new").mkdir()
    (layer / "work").mkdir()
    options = f"lowerdir={folder},upperdir={layer}/new,workdir={layer}/work,userxattr"
    _call(
        "mount",
        b"overlay",
        os.fsencode(folder),
        b"overlay",
        ctypes.c_ulong(_NO_SETUID | _NO_DEVICES),
        os.fsencode(options),
    )
    # The kernel's own folder, which whoever removes the layer has to look into.
    (layer / "work" / "work").chmod(0o700)


def _hinders(folder: Path) -> str:
    """Why a folder cannot be covered; "" where it can."""
    if any(_mounted_below(folder)):
        return f"another disk is mounted in {folder.name}"
    if folder in Path(tempfile.gettempdir()).resolve().parents:
        return f"the temporary folder lies in {folder.name}"
    if any(sign in str(folder) for sign in ",:\\"):
        return f"{folder.name} has a comma, a colon or a backslash in its name"
    return ""


def _mounted_below(folder: Path) -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place = line.split(" ")[4]
        if place.startswith(f"{folder}/".replace("//", "/")):
            yield place


def _call(name: str, *arguments: object) -> None:
    if sys.platform != "linux":
        raise OSError(f"{sys.platform} has no layers")
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
