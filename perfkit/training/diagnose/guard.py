"""A process that writes only to a copy of its own folder and connects to nobody.

It holds where a system gives no process its own view of the files (``layers``): a
training is *guarded* there. The kernel refuses writes outside of the copy (Landlock)
and connections (seccomp), of programs that the training starts as well. Where it
cannot, Python refuses what is asked of Python.

A copy stands at the path that the original has from the root, in a folder that goes
with the trial, and beside it stand links to what lies around the original: relative
paths lead where they led before. Code in it has the names of the original files,
because accounts, edits and tracebacks take the names of files from code.
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import itertools
import os
import platform
import shutil
import socket
import struct
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, NamedTuple

from perfkit.training.diagnose.layers import ONLINE, call_library

# Set to guard a training where it could be sealed.
FORCED = "PERFKIT_GUARD"


@dataclass
class Process:
    """What holds for a process.

    Attributes:
        root: The folder that stands for the root of all files; "" if it is not guarded.
        offline: Whether it is refused connections.
    """

    root: str = ""
    offline: bool = False


# This one.
process = Process()


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
    _enter(replica)
    writable = [temporary, *map(os.path.realpath, keep)]
    by_landlock = _hold_writes(writable, online=online)
    by_seccomp = not online and _hold_sockets()
    _hold_python(writable, files=not by_landlock, network=not online)
    process.offline = not online
    writes = "The kernel (Landlock) refuses writes elsewhere."
    if not by_landlock:
        writes = (
            "Python refuses writes elsewhere, but C++ libraries and other programs can "
            "still write anywhere."
        )
    sentences = [f"Guarded ({reason}): it runs in a copy of its folder.", writes]
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

    It refuses what Landlock does not hold in any case, even without ``files``.
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


# The copy.

# Every trial makes a copy, in a folder that may lie in memory.
LARGEST_BYTES, LARGE_FILE_BYTES = 500 * 10**6, 16 * 10**6
# Making a file takes as long as copying so many bytes.
_FILE_BYTES = 25_000
# A folder around the original may hold any number of files.
_MOST_LINKS = 10_000
_LEFT_OUT = frozenset({"__pycache__", "perfkit-findings"})
# No training writes there, and a script may ask git for its commit.
_LINKED = frozenset({".git", ".hg", ".venv", "venv", "node_modules"})
# Where libraries make files and folders of their own in a home.
_SHARED = (".cache", ".config", ".local", ".keras/datasets", ".keras/models", ".keras")


def copied(path: str) -> str:
    """The path of a file or folder in the copy; the same path where it is no part.

    One that is still to be made is a part of the copy.
    """
    if not process.root or path.startswith(process.root):
        return path
    place = f"{process.root}{os.path.abspath(path)}"
    is_missing = os.path.exists(path) and not os.path.exists(place)
    return path if is_missing or os.path.realpath(place) != place else place


def original(text: str) -> str:
    """A text that names the user's own files where it named those of the copy."""
    return text.replace(process.root, "") if process.root else text


def _enter(replica: "Replica") -> None:
    """Let this process find its folder, its home and its modules in the copy."""
    process.root = replica.root
    os.environ["HOME"] = f"{replica.root}{_home()}"
    sys.path[:] = [copied(place) if place else place for place in sys.path]
    os.chdir(copied(str(replica.folders[0])))
    config: Any = sys.modules.get("keras.src.backend.config")
    if hasattr(config, "_KERAS_DIR"):
        # Keras has looked for its home before, and may download to it.
        config._KERAS_DIR = copied(os.path.realpath(config._KERAS_DIR))
    to_code = SourceFileLoader.source_to_code

    def source_to_code(self: Any, data: Any, path: Any, **options: Any) -> Any:
        return to_code(self, data, original(os.fsdecode(path)), **options)

    SourceFileLoader.source_to_code = source_to_code  # type: ignore[method-assign]


class _File(NamedTuple):
    """A file to be copied, with its size in bytes."""

    source: str
    target: str
    size: int

    @property
    def is_large(self) -> bool:
        return self.size >= LARGE_FILE_BYTES

    @property
    def least_bytes(self) -> int:
        """What it adds to a copy in which large files are links."""
        return _FILE_BYTES + (0 if self.is_large else self.size)

    def write(self, *, link: bool) -> None:
        if link:
            os.symlink(self.source, self.target)
            return
        # A file that this user cannot read is none that the training reads.
        with contextlib.suppress(OSError):
            shutil.copy2(self.source, self.target)


@dataclass
class Replica:
    """A folder that stands for the root: copies of folders, and links around them.

    Attributes:
        temporary: The trial's folder, in which it lies; links followed.
        folders: To be copied, the one in which the process is first. Of a home, and of
            what holds it or the trial's folder, only the files in it are copied.
        lent: A folder that is copied where links lead into it; "" for none.
        follows_links: Whether all is copied that links lead to.
    """

    temporary: str
    folders: Sequence[Path]
    lent: str = ""
    follows_links: bool = False
    _copies: set[Path] = field(default_factory=set)

    @property
    def root(self) -> str:
        """Its path."""
        return f"{self.temporary}/files"

    def make(self) -> list[str]:
        """Write it; returns the names of what is too large and so a link."""
        home = _home()
        wide = {home, *home.parents, *Path(self.temporary).parents}
        folders = {Path(os.path.realpath(folder)) for folder in self.folders}
        inner = folders - wide
        self._copies = {path for path in inner if inner.isdisjoint(path.parents)}
        shared = {home / name for name in _SHARED if (home / name).is_dir()}
        around = {home, *shared, *(folders & wide)}
        around.update(*(path.parents for path in around | self._copies))
        for folder in sorted(around):
            self._link_around(folder, around | self._copies, copies=folder in folders)
        return [name for folder in self._copies for name in self._copy(folder)]

    def _link_around(self, folder: Path, inner: set[Path], *, copies: bool) -> None:
        os.makedirs(f"{self.root}{folder}", exist_ok=True)
        # Of a folder that may not be listed the training knows no names, either.
        with contextlib.suppress(OSError):
            for entry in itertools.islice(os.scandir(folder), _MOST_LINKS):
                if Path(entry.path) not in inner:
                    is_file = copies and entry.is_file(follow_symlinks=False)
                    size = entry.stat().st_size if is_file else 0
                    file = _File(entry.path, f"{self.root}{entry.path}", size)
                    file.write(link=not is_file or file.is_large)

    def _copy(self, folder: Path) -> list[str]:
        """Copy a folder; if it is too large, large files and whole parts are links."""
        target = f"{self.root}{folder}"
        os.mkdir(target)
        parts: dict[str, list[_File]] = {}
        for name in os.listdir(folder):
            parts[name], size = [], 0
            for file in self._files(f"{folder}/{name}", f"{target}/{name}"):
                parts[name].append(file)
                size += file.least_bytes
                if size > LARGEST_BYTES:
                    break
        files = list(itertools.chain(*parts.values()))
        fits = sum(file.size + _FILE_BYTES for file in files) <= LARGEST_BYTES

        def rank(name: str) -> tuple[bool, int]:
            place = folder / name
            is_run_in = any(path.is_relative_to(place) for path in self.folders)
            return not is_run_in, sum(file.least_bytes for file in parts[name])

        labels, size = [], 0
        for name in sorted(parts, key=rank):
            size += rank(name)[1]
            if fits or size <= LARGEST_BYTES:
                for file in parts[name]:
                    file.write(link=file.is_large and not fits)
            else:
                shutil.rmtree(f"{target}/{name}", ignore_errors=True)
                os.symlink(os.path.realpath(folder / name), f"{target}/{name}")
                labels.append(name)
        if not fits and any(file.is_large for file in files):
            labels.append(f"files of {LARGE_FILE_BYTES // 10**6} MB and more")
        return labels

    def _files(
        self, path: str, target: str, above: frozenset[str] = frozenset()
    ) -> Iterator[_File]:
        """Make the folders and links of what lies there, and yield its files.

        The folders ``above`` it are those that are copied.
        """
        real, name = os.path.realpath(path), os.path.basename(path)
        if name in _LEFT_OUT:
            return
        if os.path.islink(path) and not self._is_followed(real, above):
            os.symlink(f"{self.root}{real}" if self._holds(real) else real, target)
        elif os.path.isfile(real):
            yield _File(real, target, os.stat(real).st_size)
        elif os.path.isdir(real):
            if name in _LINKED or os.path.exists(f"{real}/pyvenv.cfg"):
                os.symlink(real, target)
                return
            os.mkdir(target)
            with contextlib.suppress(OSError):
                for child in os.listdir(real):
                    inside = f"{real}/{child}", f"{target}/{child}"
                    yield from self._files(*inside, above | {real})

    def _holds(self, real: str) -> bool:
        return any(Path(real).is_relative_to(folder) for folder in self._copies)

    def _is_followed(self, real: str, above: frozenset[str]) -> bool:
        """Whether what a link leads to is copied, and not the link."""
        if self._holds(real) or real in above or not os.path.exists(real):
            return False
        is_lent = bool(self.lent) and Path(real).is_relative_to(self.lent)
        return is_lent or self.follows_links


def _home() -> Path:
    try:
        return Path(os.path.realpath(Path.home()))
    except RuntimeError:
        # This user has no home.
        return Path("/")
