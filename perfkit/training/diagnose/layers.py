"""A process that reads the user's files, writes to copies of its own and sends nothing.

Where Linux lets a process have its own view of the file system, folders are covered by
a layer that belongs to that process: it sees what lies below, and what it writes lands
in the layer and goes with it. Nothing in the script has to be changed for that, and
libraries in other languages are held as well. Its network is one of its own, too, in
which it reaches itself and what it starts.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import socket
import struct
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from perfkit.machine.limits import text_of

# Where Ubuntu says whether it holds namespaces back.
_RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
# Set by whoever lets a script reach the network.
ONLINE = "PERFKIT_ONLINE"
# From <linux/sched.h> and <sys/mount.h>.
_NEW_USERS, _NEW_MOUNTS, _NEW_NETWORK = 0x10000000, 0x00020000, 0x40000000
_READ_ONLY, _NO_SETUID, _NO_DEVICES = 1, 2, 4
_AGAIN, _BIND, _ALL_BELOW = 32, 4096, 16384
# Of <sys/statvfs.h>: set-user-ID, devices, programs, times of access.
_STAYS = 2 | 4 | 8 | 1024 | 2048
# From <linux/sockios.h> and <net/if.h>; Python has no names for them.
_SET_FLAGS, _UP = 0x8914, 1
# What the system keeps there is no user's, or is what programs speak to each other by.
_OF_THE_SYSTEM = frozenset(
    {
        *("proc", "sys", "dev", "run", "var", "snap", "lost+found"),
        *("bin", "boot", "etc", "lib", "lib32", "lib64", "libx32", "sbin", "usr"),
    }
)
# But for these in them: where all may write, and disks that were plugged in.
_OF_USERS = (Path("/var/tmp"), Path("/run/media"))


def contain(
    folders: Iterable[Path], keep: Iterable[str] = (), *, online: bool = False
) -> None:
    """Cover these folders, and all others that users may write to.

    It holds for this process and all that it starts. To be called before the process
    has a second thread. A folder that cannot be covered can be read and not written.

    Args:
        folders: To be covered in any case.
        keep: Folders to leave as they are: somebody else reads what is written there.
        online: Whether it may reach the network.

    Raises:
        OSError: This system does not allow it.
    """
    where = os.getcwd()
    needed, disks = covered(folders), _disks()
    # What is temporary lies in a folder that goes with the trial.
    passthrough = [Path(os.path.realpath(p)) for p in (tempfile.gettempdir(), *keep)]
    _own_view(0 if online else _NEW_NETWORK)
    outer = (place for place in Path("/").iterdir() if not place.is_symlink())
    roots = Path.home(), *_OF_USERS, *outer, *disks
    places = {Path(os.path.realpath(place)) for place in roots}
    theirs = (place for place in places if not _of_the_system(place))
    for folder in covered([*needed, *theirs]):
        _shield(folder, needed, passthrough, disks)
    # A process stays in the folder that it was in, below the layer.
    os.chdir(where)


def refusal(
    folders: Iterable[Path], keep: Iterable[str] = (), *, online: bool = False
) -> str:
    """Why ``contain`` would fail when half of it is done; "" where it would not.

    Ubuntu lets a process have namespaces and forbids what is done in them. From there
    no process comes back, so a child tries it.
    """
    if text_of(_RESTRICTED) in ("", "0"):
        return ""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        try:
            contain(folders, keep, online=online)
        except OSError as error:
            os.write(writer, (error.strerror or str(error)).encode())
        finally:
            # Nothing of the process that it is a copy of may be ended here.
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader, encoding="utf-8") as file:
        return file.read()


def covered(folders: Iterable[Path]) -> list[Path]:
    """The outermost of these folders, links followed, and other disks among them."""
    real = sorted({Path(os.path.realpath(folder)) for folder in folders})
    disks = _disks()
    return [f for f in real if f in disks or not any(p in f.parents for p in real)]


def _of_the_system(place: Path) -> bool:
    """Whether it is no place of users, or one that this user cannot enter."""
    is_of_users = any(folder in (place, *place.parents) for folder in _OF_USERS)
    if place == Path("/"):
        # The home of somebody who has none, such as a number that Docker was given.
        return True
    if place.parts[1] in _OF_THE_SYSTEM and not is_of_users:
        return place != Path(os.path.realpath(Path.home()))
    return not place.is_dir() or not os.access(place, os.X_OK)


def _shield(
    folder: Path, needed: list[Path], passthrough: list[Path], disks: list[Path]
) -> None:
    """Cover a folder, or of one with another disk in it all that is beside that."""
    if folder in passthrough:
        return
    parted = any(folder in disk.parents for disk in disks)
    try:
        if parted:
            raise OSError(f"another disk is mounted in {folder.name}")
        _cover(folder, passthrough)
    except OSError:
        around = any(folder in place.parents for place in needed)
        if folder in needed or (around and not parted):
            raise
        _close(folder, passthrough)
    if parted:
        for child in folder.iterdir():
            if child not in disks and not child.is_symlink() and child.is_dir():
                _shield(child, needed, passthrough, disks)


def is_offline() -> bool:
    """Whether no way leads from this process to another machine."""
    try:
        return len(Path("/proc/self/net/route").read_text().splitlines()) < 2
    except OSError:
        return False


def _own_view(flags: int = 0) -> None:
    user, group = os.getuid(), os.getgid()
    try:
        _call("unshare", _NEW_USERS | _NEW_MOUNTS | flags)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            # The kernel says that a device has no space left.
            raise OSError(error.errno, "no user namespace is left") from None
        raise
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    if flags & _NEW_NETWORK:
        # Processes of one training speak to each other over it.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH22x", b"lo", _UP))


def _cover(folder: Path, passthrough: list[Path]) -> None:
    """Lay a layer of this process over a folder."""
    if any(sign in str(folder) for sign in ",:\\"):
        raise OSError(f"{folder.name} has a comma, a colon or a backslash in its name")
    with _kept_within(folder, passthrough):
        layer = Path(tempfile.mkdtemp(prefix="perfkit-layer-"))
        try:
            # A layer may not lie in what it covers.
            _lay(folder, layer, in_memory=folder in layer.parents)
        except OSError:
            # Not every disk can hold a layer.
            _lay(folder, layer, in_memory=True)


def _lay(folder: Path, layer: Path, *, in_memory: bool) -> None:
    if in_memory:
        _mount("tmpfs", layer, "mode=700")
    (layer / "new").mkdir(exist_ok=True)
    (layer / "work").mkdir(exist_ok=True)
    above = f"upperdir={layer}/new,workdir={layer}/work,userxattr"
    _mount("overlay", folder, f"lowerdir={folder},{above}")
    if not in_memory:
        # The kernel's own folder, which whoever removes the layer has to look into.
        (layer / "work" / "work").chmod(0o700)


def _close(folder: Path, passthrough: list[Path]) -> None:
    """Let nothing be written in a folder that cannot be covered."""
    with _kept_within(folder, passthrough):
        _mount("", folder, source=folder, flags=_BIND | _ALL_BELOW)
        # What is set for a disk has to be said again.
        flags = os.statvfs(folder).f_flag & _STAYS
        _mount("", folder, flags=_AGAIN | _BIND | _READ_ONLY | flags)


@contextlib.contextmanager
def _kept_within(folder: Path, passthrough: list[Path]) -> Iterator[None]:
    """Put back what is kept in a folder once that is covered."""
    with contextlib.ExitStack() as stack:
        opened = []
        for place in covered(path for path in passthrough if folder in path.parents):
            number = os.open(place, os.O_PATH)
            stack.callback(os.close, number)
            opened.append((Path(f"/proc/self/fd/{number}"), place))
        yield
        for before, place in opened:
            _mount("", place, source=before, flags=_BIND | _ALL_BELOW)


def _disks() -> list[Path]:
    """Where file systems are mounted, but for the one that holds all others."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [
        Path(re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), place))
        for place in (line.split(" ")[4] for line in lines)
        if place != "/"
    ]


def _mount(
    kind: str,
    place: Path,
    options: str = "",
    source: Path | None = None,
    flags: int = _NO_SETUID | _NO_DEVICES,
) -> None:
    device, target, data = map(os.fsencode, (source or kind, place, options))
    _call("mount", device, target, kind.encode(), ctypes.c_ulong(flags), data)


def _call(name: str, *arguments: object) -> None:
    if sys.platform != "linux":
        raise OSError(f"{sys.platform} has none")
    call_library(name, *arguments)


def call_library(name: str, *arguments: object) -> int:
    """Call a function of the C library that is below 0 where the system refuses.

    Raises:
        OSError: It refuses.
    """
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    # The others give an ``int``, whose sign would be lost in a longer number.
    function.restype = ctypes.c_long if name == "syscall" else ctypes.c_int
    # A plain number would be passed with half of its bits.
    words = (ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments)
    if (result := int(function(*words))) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
