"""How much of this machine may be used? Cores and memory after affinity and cgroups."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perfkit.machine.files import amounts_of, listed, number_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def cores_granted(root: Path, present: int) -> float:
    """Cores this process may keep busy: its affinity, cut by every cgroup quota.

    Args:
        root: The folder that holds ``proc`` and ``sys``.
        present: Logical cores, the answer where nothing limits it.
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
    return (listed(allowed[1]) or None) if allowed else None


def memory_granted(root: Path, present: int) -> int:
    """Bytes of RAM this process may hold: those present, cut by every cgroup limit."""
    return min([present, *(limit for limit, _ in _memory_groups(root))])


def memory_free(root: Path, available: int) -> int:
    """Bytes of RAM this process may still take: those available, cut as well.

    Args:
        root: The folder that holds ``proc`` and ``sys``.
        available: Bytes that the system could give, the answer where nothing limits it.
    """
    left = (
        max(0, limit - used) for limit, used in _memory_groups(root) if used is not None
    )
    return min([available, *left])


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


def _memory_groups(root: Path) -> Iterator[tuple[int, int | None]]:
    """Limit and use of every group that has a limit; cached files count as free."""
    versions = (
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
        ("", "memory.max", "memory.current", ""),
    )
    for controller, limit_file, used_file, prefix in versions:
        for folder in _groups(root, controller):
            limit, used = number_of(folder / limit_file), number_of(folder / used_file)
            if limit:
                cached = amounts_of(folder / "memory.stat").get(
                    f"{prefix}inactive_file"
                )
                yield limit, None if used is None else max(0, used - (cached or 0))


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Every folder whose limits hold for this process, from its own up to the root.

    Args:
        root: The folder that holds ``proc`` and ``sys``.
        controller: Of cgroup v1; "" for the one hierarchy of v2.
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
