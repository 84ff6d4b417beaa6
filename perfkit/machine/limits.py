"""How much of this machine may be used? Cores and memory after affinity and cgroups."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def cores_granted(root: Path, present: int) -> float:
    """Cores this process may keep busy: its affinity, cut by every cgroup quota.

    Args:
        root: The folder that holds ``proc`` and ``sys``.
        present: Logical cores, the answer where nothing limits it.
    """
    limits = [float(present), *_quotas_v1(root), *_quotas_v2(root)]
    allowed = _match(root / "proc/self/status", r"^Cpus_allowed_list:\s*([\d,-]+)$")
    if allowed:
        limits.append(float(_listed(allowed)))
    return min(limits)


def memory_granted(root: Path, present: int) -> int:
    """Bytes of RAM this process may hold: those present, cut by every cgroup limit."""
    limits = [present]
    for folder in _groups(root, "memory"):
        limits += _whole_numbers(folder / "memory.limit_in_bytes")
    for folder in _groups(root, ""):
        limits += _whole_numbers(folder / "memory.max")
    return min(limits)


def text_of(path: Path) -> str:
    """The text of a small file of /proc or /sys; "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _quotas_v1(root: Path) -> Iterator[float]:
    for folder in _groups(root, "cpu"):
        quota = _whole_numbers(folder / "cpu.cfs_quota_us")
        period = _whole_numbers(folder / "cpu.cfs_period_us")
        if quota and period:
            yield quota[0] / period[0]


def _quotas_v2(root: Path) -> Iterator[float]:
    for folder in _groups(root, ""):
        numbers = re.fullmatch(r"(\d+) (\d+)", text_of(folder / "cpu.max"))
        if numbers and int(numbers[2]):
            yield int(numbers[1]) / int(numbers[2])


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Every folder whose limits hold for this process, from its own up to the root.

    Args:
        root: The folder that holds ``proc`` and ``sys``.
        controller: Of cgroup v1; "" for the one hierarchy of v2.
    """
    for line in text_of(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller not in controllers.split(","):
            continue
        tops = [controllers, controller] if controller else ["", "unified"]
        for top in dict.fromkeys(root / "sys/fs/cgroup" / top for top in tops):
            # Inside a container the path may be the host's, which is not mounted here:
            # the folders that are missing say nothing, the mounted root still does.
            parts = [part for part in path.split("/") if part not in ("", "..")]
            for depth in range(len(parts), -1, -1):
                yield top.joinpath(*parts[:depth])


def _whole_numbers(path: Path) -> list[int]:
    """The positive number in a file, in a list; empty where there is no limit."""
    text = text_of(path)
    return [int(text)] if text.isdecimal() and int(text) else []


def _match(path: Path, pattern: str) -> str:
    found = re.search(pattern, text_of(path), re.MULTILINE)
    return found[1] if found else ""


def _listed(cores: str) -> int:
    """How many cores a list such as ``"0-3,8"`` names."""
    count = 0
    for part in cores.split(","):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count
