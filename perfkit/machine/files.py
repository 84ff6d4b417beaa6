"""The small files of /proc and /sys: their text and numbers, whatever lies there.

A file that is missing, refused, cut off or full of something else gives no answer; it
never gives a wrong one and never an error. The same holds for psutil, which is asked
where there are no such files.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# What a thousand cores say in /proc/cpuinfo is a tenth of this.
_LARGEST_BYTES = 16 * 10**6
# /proc/sys refuses to be read in pieces of megabytes.
_PIECE_BYTES = 2**16
_WORD = re.compile(r"[\w.+-]{1,40}", re.ASCII)


def text_of(path: Path) -> str:
    """The text of a file; "" if it cannot be read."""
    data = b""
    try:
        with path.open("rb") as file:
            while len(data) < _LARGEST_BYTES and (more := file.read(_PIECE_BYTES)):
                data += more
    except (OSError, ValueError):
        return ""
    return data.decode("utf-8", errors="replace").strip()


def asked(call: Callable[[], Any]) -> Any:
    """What psutil answers where there are no such files; None if it is refused."""
    try:
        return call()
    except (OSError, RuntimeError, AttributeError, psutil.Error):
        return None


def word_of(path: Path) -> str | None:
    """The one plain word that a file holds, such as a name."""
    text = text_of(path)
    return text if _WORD.fullmatch(text) else None


def number_of(path: Path) -> int | None:
    """The whole number that a file holds, 0 or more."""
    text = text_of(path)
    # Longer ones count nothing that exists, and the longest cannot be read at all.
    return int(text) if re.fullmatch(r"[0-9]{1,19}", text) else None


def amounts_of(path: Path) -> dict[str, int]:
    """The numbers of a file of lines such as ``"MemTotal:  24684084 kB"``, in bytes.

    Without a unit, as in a ``memory.stat``, they are what the file says.
    """
    lines = re.findall(
        r"^([\w()]+):?\s+([0-9]{1,16})( kB)?$", text_of(path), re.MULTILINE | re.ASCII
    )
    return {name: int(number) * (1024 if unit else 1) for name, number, unit in lines}


def folders(path: Path, pattern: str) -> Iterator[Path]:
    """What lies in a folder under names that the pattern fits in full, in order."""
    try:
        names = sorted(entry.name for entry in path.iterdir())
    except OSError:
        return
    for name in names:
        if re.fullmatch(pattern, name):
            yield path / name


def listed(numbers: str) -> int | None:
    """How many numbers a list such as ``"0-3,8"`` names; None if it is no list."""
    count = 0
    for part in numbers.split(","):
        ends = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part)
        if not ends or int(ends[2] or ends[1]) < int(ends[1]):
            return None
        count += int(ends[2] or ends[1]) - int(ends[1]) + 1
    return count
