"""How much of this machine may be used? Cores and memory after affinity and cgroups.

Everywhere in this package ``root`` is the folder that holds ``proc`` and ``sys``.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

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


def folders(path: Path, pattern: str) -> Iterator[Path]:
    """What lies in a folder under names that the pattern fits in full, in order."""
    try:
        names = sorted(entry.name for entry in path.iterdir())
    except OSError:
        return
    for name in names:
        if re.fullmatch(pattern, name):
            yield path / name


def count_of(numbers: str) -> int | None:
    """How many numbers a list such as ``"0-3,8"`` names; None if it is no list."""
    count = 0
    for part in numbers.split(","):
        ends = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part)
        if not ends or int(ends[2] or ends[1]) < int(ends[1]):
            return None
        count += int(ends[2] or ends[1]) - int(ends[1]) + 1
    return count


def cores_granted(root: Path, present: int) -> float:
    """Cores this process may keep busy: its affinity, cut by every cgroup quota.

    Where nothing limits it, all logical cores that are present.
    """
    limits = (present, quota(root), affinity(root))
    return min(float(cores) for cores in limits if cores)


def quota(root: Path) -> float | None:
    """Cores whose time the control groups grant; None where no quota is seen."""
    return min([*_quotas_v1(root), *_quotas_v2(root)], default=None)


def affinity(root: Path) -> int | None:
    """Cores that this process may run on; None where the system does not say."""
    status = text_of(root / "proc/self/status")
    allowed = re.search(r"^Cpus_allowed_list:\s*([\d,-]+)$", status, re.MULTILINE)
    return (count_of(allowed[1]) or None) if allowed else None


def memory_granted(root: Path, present: int) -> int:
    """Bytes of RAM this process may hold: those present, cut by every cgroup limit."""
    return min([present, *(group.limit for group in _memory_groups(root))])


def memory_free(root: Path, available: int) -> int:
    """Bytes of RAM this process may still take: those available, cut as well.

    Where nothing limits it, all that are available.
    """
    left = (
        max(0, group.limit - group.used)
        for group in _memory_groups(root)
        if group.used is not None
    )
    return min([available, *left])


def free_bytes() -> int:
    """Bytes of RAM that this process may still take, here and now."""
    return memory_free(Path("/"), psutil.virtual_memory().available)


def _quotas_v1(root: Path) -> Iterator[float]:
    for folder in _groups(root, "cpu"):
        quota = number_of(folder / "cpu.cfs_quota_us")
        period = number_of(folder / "cpu.cfs_period_us")
        if quota and period:
            yield quota / period


def _quotas_v2(root: Path) -> Iterator[float]:
    for folder in _groups(root, ""):
        text = text_of(folder / "cpu.max")
        numbers = re.fullmatch(r"([0-9]{1,18}) ([0-9]{1,18})", text)
        if numbers and int(numbers[1]) and int(numbers[2]):
            yield int(numbers[1]) / int(numbers[2])


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Bytes that a group may use, and that it does; None if not known."""

    limit: int
    used: int | None


def _memory_groups(root: Path) -> Iterator[_Group]:
    """Every group that has a limit; cached files count as free."""
    versions = (
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
        ("", "memory.max", "memory.current", ""),
    )
    for controller, limit_file, used_file, prefix in versions:
        for folder in _groups(root, controller):
            limit, used = number_of(folder / limit_file), number_of(folder / used_file)
            if limit:
                amounts = amounts_of(folder / "memory.stat")
                kinds = (f"{prefix}inactive_file", f"{prefix}active_file")
                cached = sum(amounts.get(kind, 0) for kind in kinds)
                yield _Group(
                    limit=limit,
                    used=None if used is None else max(0, used - cached),
                )


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Every folder whose limits hold for this process, from its own up to the root.

    The controller is one of cgroup v1, or "" for the one hierarchy of v2.
    """
    for line in text_of(root / "proc/self/cgroup").splitlines()[:100]:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller not in controllers.split(",") or "\0" in line:
            continue
        tops = [controllers, controller] if controller else ["", "unified"]
        for top in dict.fromkeys(root / "sys/fs/cgroup" / top for top in tops):
            # Inside a container the path may be the host's, which is not mounted here:
            # the folders that are missing say nothing, the mounted root still does.
            parts = [part for part in path.split("/") if part not in ("", "..")][:50]
            for depth in range(len(parts), -1, -1):
                yield top.joinpath(*parts[:depth])
