"""A process that writes only to folders of its own and connects to nobody.

It holds where a system gives no process its own view of the files (``layers``): a
training is *guarded* there. It works on a copy of its folder (``replica``). The kernel
refuses other writes (Landlock) and connections (seccomp), of programs that the training
starts as well. Where it cannot, Python refuses what is asked of Python.
"""

import ctypes
import errno
import fcntl
import functools
import itertools
import os
import platform
import socket
import struct
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfkit.training.diagnose.layers import ONLINE, call_library
from perfkit.training.diagnose.replica import LARGEST_BYTES, Replica, enter

# Set by whoever wants a training guarded where it could be sealed.
FORCED = "PERFKIT_GUARD"


@dataclass
class _Level:
    """What holds for this process.

    Attributes:
        guarded: Whether writes outside of the copy are refused.
        offline: Whether connections are.
    """

    guarded: bool = False
    offline: bool = False


_level = _Level()


def is_guarded() -> bool:
    """Whether this process may write to its own folders alone."""
    return _level.guarded


def is_offline() -> bool:
    """Whether this process is refused connections."""
    return _level.offline


def guard(
    folders: Sequence[Path], keep: Iterable[str] = (), *, reason: str, lent: str = ""
) -> str:
    """Copy these folders, go to the copy, and let nothing be written elsewhere.

    To be called before the process has a second thread.

    Args:
        folders: To be copied, the one in which the process is first.
        keep: Folders that it may write to: somebody else reads what is written there.
        reason: Why it is not sealed.
        lent: A folder that is copied where links lead into it; "" for none.

    Returns:
        Who refuses what, in sentences.
    """
    online = bool(os.environ.get(ONLINE))
    temporary = os.path.realpath(tempfile.gettempdir())
    # Without Landlock a library in C++ would write to the user's files through a link.
    follows_links = not _landlock_version()
    replica = Replica(temporary, folders, lent, follows_links=follows_links)
    too_large = replica.make()
    enter(replica)
    writable = [temporary, *map(os.path.realpath, keep)]
    by_landlock = _hold_writes(writable, online=online)
    by_seccomp = not online and _hold_sockets()
    _hold_python(writable, files=not by_landlock, network=not online)
    _level.guarded, _level.offline = True, not online
    sentences = [f"Guarded ({reason}): it runs in a copy of its folder."]
    if by_landlock:
        sentences.append("The kernel (Landlock) refuses writes elsewhere.")
    else:
        sentences.append(
            "Python refuses writes elsewhere, but C++ libraries and other programs can "
            "still write anywhere."
        )
    if not online:
        system = "The kernel (seccomp)" if by_seccomp else "Python alone"
        sentences.append(f"{system} refuses connections, even to this machine.")
    if too_large:
        sentences.append(
            f"A copy holds at most {LARGEST_BYTES // 10**6} MB, so the training reads "
            f"{' and '.join(too_large)} in the original folder and cannot write there."
        )
    return " ".join(sentences)


# Landlock. From <linux/landlock.h> and <linux/prctl.h>; the numbers of these calls are
# the same on all processors.
_NEW_RULESET, _ADD_RULE, _RESTRICT_SELF, _NO_NEW_PRIVILEGES = 444, 445, 446, 38
_WRITE, _REMOVE, _MAKE, _RENAME, _TRUNCATE = 1 << 1, 3 << 4, 127 << 6, 1 << 13, 1 << 14
# Devices that are made could be disks.
_MAKE_DEVICE = 1 << 6 | 1 << 11
_TCP, _ABSTRACT_SOCKETS = 3, 1
# What programs that compute write to: beside what is nothing, GPUs.
_DEVICES = ("null", "zero", "full", "random", "urandom", "nvidia*", "dri", "kfd", "dxg")


@functools.cache
def _landlock_version() -> int:
    """The version of Landlock that this kernel has; 0 for none."""
    try:
        return _system_call(_NEW_RULESET, None, 0, 1)
    except OSError:
        return 0


def _hold_writes(folders: Iterable[str], *, online: bool) -> bool:
    """Let the kernel refuse writes elsewhere; False where it cannot.

    Version 1 refuses to move files between any folders; versions 1 and 2 refuse no
    truncation by name.
    """
    if not (version := _landlock_version()):
        return False
    truncate = _TRUNCATE if version >= 3 else 0
    rights = _WRITE | _REMOVE | _MAKE | truncate | (_RENAME if version >= 2 else 0)
    network = _TCP if version >= 4 and not online else 0
    scope = _ABSTRACT_SOCKETS if version >= 6 and not online else 0
    attributes = struct.pack("=QQQ", rights, network, scope)
    ruleset = _system_call(_NEW_RULESET, attributes, len(attributes), 0)
    try:
        for folder in (*folders, "/dev/shm"):
            _allow(ruleset, folder, rights & ~_MAKE_DEVICE)
        devices = (Path("/dev").glob(pattern) for pattern in _DEVICES)
        for path in (*itertools.chain(*devices), "/proc/self"):
            _allow(ruleset, str(path), _WRITE | truncate)
        _control(_NO_NEW_PRIVILEGES, 1, 0)
        _system_call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return True


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        _system_call(_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)


# Seccomp. From <linux/seccomp.h>, <linux/audit.h> and the tables of system calls.
_SET_FILTER, _FILTER = 22, 2
# The name of the processor to filters, and the number of ``socket``.
_PROCESSORS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
# A ring of requests could open sockets past the filter; such numbers are those of
# programs with pointers of 32 bits.
_NEW_RING, _FOREIGN = 425, 0x40000000
_LOAD, _IF_EQUAL, _IF_ABOVE, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
# Where a call's number, its processor and its first argument stand.
_NUMBER, _PROCESSOR, _FIRST = 0, 4, 16


def _hold_sockets() -> bool:
    """Let the kernel refuse sockets, but for those between processes of this machine.

    Returns False where it cannot. Those of the kernel (netlink) stay: the C library
    asks it for the machine's addresses.
    """
    if sys.platform != "linux" or platform.machine() not in _PROCESSORS:
        return False
    processor, socket_call = _PROCESSORS[platform.machine()]
    refuse = (_RETURN, 0, 0, _FAIL | errno.EACCES)
    # What to do, how many instructions to leave out if it is so and if not, with what.
    program = [
        (_LOAD, 0, 0, _PROCESSOR),
        (_IF_EQUAL, 1, 0, processor),
        refuse,
        (_LOAD, 0, 0, _NUMBER),
        (_IF_ABOVE, 0, 1, _FOREIGN),
        refuse,
        (_IF_EQUAL, 0, 1, _NEW_RING),
        (_RETURN, 0, 0, _FAIL | errno.ENOSYS),
        (_IF_EQUAL, 1, 0, socket_call),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST),
        (_IF_EQUAL, 1, 0, socket.AF_UNIX),
        (_IF_EQUAL, 0, 1, socket.AF_NETLINK),
        (_RETURN, 0, 0, _ALLOW),
        refuse,
    ]
    code = b"".join(itertools.starmap(struct.Struct("=HBBI").pack, program))
    buffer = ctypes.create_string_buffer(code)
    try:
        _control(_NO_NEW_PRIVILEGES, 1, 0)
        place = ctypes.addressof(buffer)
        _control(_SET_FILTER, _FILTER, struct.pack("HP", len(program), place))
    except OSError:
        return False
    return True


def _control(option: int, value: int, argument: int | bytes) -> None:
    """Set an option of this process, with ``prctl``."""
    call_library("prctl", option, value, argument, 0, 0)


def _system_call(number: int, *arguments: int | bytes | None) -> int:
    """Ask the kernel by number, where the C library has no name for it."""
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return call_library("syscall", number, *arguments)


# Python. Where a path stands among the arguments of a change that Python reports, and
# where the folder does that it is relative to, -1 for that of the process.
_ENTRIES = {
    **dict.fromkeys(("os.remove", "os.rmdir"), ((0, 1),)),
    **dict.fromkeys(("os.rename", "os.link"), ((0, 2), (1, 3))),
    **{"os.mkdir": ((0, 2),), "os.symlink": ((1, 2),)},
}
# What Landlock does not hold, truncation in its first versions.
_METADATA = {
    **dict.fromkeys(("os.chown", "os.utime"), ((0, 3),)),
    **dict.fromkeys(("os.setxattr", "os.removexattr", "os.chflags"), ((0, -1),)),
    **{"os.chmod": ((0, 2),), "os.truncate": ((0, -1),)},
}
_OPENED_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_SENDS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
# Of <fcntl.h> on macOS, where no folder lists the open files.
_GET_PATH = 50


def _hold_python(folders: Sequence[str], *, files: bool, network: bool) -> None:
    """Let Python refuse what it is asked for; this cannot be taken back.

    Args:
        folders: That may be written to.
        files: Whether it refuses writes; what Landlock does not hold, in any case.
        network: Whether it refuses connections.
    """
    entries = _ENTRIES if files else {}
    writable = (*(f"{folder}/" for folder in folders), "/dev/")

    def check(path: Any, base: int, *, follows: bool) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            # An open file was checked as it was opened.
            return
        name = os.path.join(_folder_of(base) if base >= 0 else "", os.fsdecode(path))
        head, tail = os.path.split(name.rstrip(os.sep))
        real = os.path.realpath(name) if follows else f"{os.path.realpath(head)}/{tail}"
        if not f"{real}/".startswith(writable):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if files and flags & _OPENED_TO_WRITE:
                check(path, -1, follows=True)
        elif places := entries.get(event) or _METADATA.get(event):
            for path, base in places:
                folder = arguments[base] if base >= 0 else -1
                check(arguments[path], folder, follows=event in _METADATA)
        elif event in _SENDS and network and arguments[0].family != socket.AF_UNIX:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    sys.addaudithook(hear)


def _folder_of(number: int) -> str:
    """The path of an open folder."""
    if sys.platform == "linux":
        return os.readlink(f"/proc/self/fd/{number}")
    return os.fsdecode(fcntl.fcntl(number, _GET_PATH, bytes(1024)).rstrip(b"\0"))
