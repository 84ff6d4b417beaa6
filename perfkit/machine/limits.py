"""How much of this machine may be used? Cores and memory after affinity and cgroups.

Everywhere in this package ``root`` is the folder that holds ``proc`` and ``sys``.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

_WORD = re.compile(r"[\w.+-]{1,40}", re.ASCII)


def text_of(path: Path) -> str:
    """The text of a file; "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, ValueError):
        return ""


def call_or_none(call: Callable[[], Any]) -> Any:
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


def cores_granted(root: Path, present: int) -> float:
    """Cores this process may keep busy: its affinity, cut by every cgroup quota.

    Where nothing limits it, all logical cores that are present.
    """
    limits = (present, quota(root), affinity())
    return min(float(cores) for cores in limits if cores)


def quota(root: Path) -> float | None:
    """Cores whose time the control groups grant; None where no quota is seen."""
    limits = (
        re.fullmatch(r"([0-9]{1,18}) ([0-9]{1,18})", text_of(folder / "cpu.max"))
        for folder in _groups(root)
    )
    pairs = ((int(limit[1]), int(limit[2])) for limit in limits if limit)
    quotas = (time / period for time, period in pairs if time and period)
    return min(quotas, default=None)


def affinity() -> int | None:
    """Cores that this process may run on; None where the system does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def memory_granted(root: Path, present: int) -> int:
    """Bytes of RAM this process may hold: those present, cut by every cgroup limit."""
    return min([present, *(limit for limit, _ in _memory_limits(root))])


def memory_free(root: Path, available: int) -> int:
    """Bytes of RAM this process may still take: those available, cut as well.

    Where nothing limits it, all that are available.
    """
    return min([available, *(free for _, free in _memory_limits(root))])


def free_bytes() -> int:
    """Bytes of RAM that this process may still take, here and now."""
    return memory_free(Path("/"), psutil.virtual_memory().available)


def _memory_limits(root: Path) -> Iterator[tuple[int, int]]:
    """Bytes that each group with a limit may use, and those of them that are free.

    Cached files count as free.
    """
    for folder in _groups(root):
        if limit := number_of(folder / "memory.max"):
            amounts = amounts_of(folder / "memory.stat")
            cached = amounts.get("inactive_file", 0) + amounts.get("active_file", 0)
            used_bytes = max(0, (number_of(folder / "memory.current") or 0) - cached)
            yield limit, max(0, limit - used_bytes)


def _groups(root: Path) -> Iterator[Path]:
    """Every folder of cgroup v2 that limits this process, from its own up to the root.

    Inside a container the path may be the host's, which is not mounted here: the
    folders that are missing say nothing, the mounted root still does.
    """
    groups = text_of(root / "proc/self/cgroup")
    if match := re.search(r"^0::([^\0\n]*)$", groups, re.MULTILINE):
        parts = [part for part in match[1].split("/") if part not in ("", "..")][:50]
        for depth in range(len(parts), -1, -1):
            yield root.joinpath("sys/fs/cgroup", *parts[:depth])
