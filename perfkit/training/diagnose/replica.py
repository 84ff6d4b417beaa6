"""Copies of the folders of a training, in a folder that goes with the trial.

A copy stands at the path that the original has from the root, and beside it stand links
to what lies around the original: relative paths lead where they led before. Code in it
has the names of the original files, because accounts, edits and tracebacks take the
names of files from code.
"""

import contextlib
import fcntl
import itertools
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, NamedTuple

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
# From <linux/fs.h>.
_CLONE = 0x40049409


@dataclass
class _Process:
    """Where this process has its copies.

    Attributes:
        root: The folder that stands for the root of all files; "" without copies.
    """

    root: str = ""


_process = _Process()


def copied(path: str) -> str:
    """The path of a file or folder in the copy; the same path where it is no part.

    One that is still to be made is a part of the copy.
    """
    if not _process.root or path.startswith(_process.root):
        return path
    place = f"{_process.root}{os.path.abspath(path)}"
    is_missing = os.path.exists(path) and not os.path.exists(place)
    return path if is_missing or os.path.realpath(place) != place else place


def original(text: str) -> str:
    """A text that names the user's own files where it named those of the copy."""
    return text.replace(_process.root, "") if _process.root else text


def enter(replica: "Replica") -> None:
    """Let this process find its folder, its home and its modules in the copy."""
    _process.root = replica.root
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
            if not self._clone():
                shutil.copyfile(self.source, self.target)
            shutil.copystat(self.source, self.target)

    def _clone(self) -> bool:
        """Share the blocks of the file with its copy; False where the disk cannot."""
        if sys.platform != "linux":
            return False
        with open(self.source, "rb") as source, open(self.target, "wb") as target:
            try:
                fcntl.ioctl(target, _CLONE, source.fileno())
            except OSError:
                return False
        return True


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

        Args:
            path: Of a file, a folder or a link.
            target: Its path in the copy.
            above: The folders that it lies in, as far as they are copied.
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
