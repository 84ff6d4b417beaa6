"""Which workers of a cluster are asked?

A machine measures one thing at a time, however many workers it has: two at once would
measure each other. So one worker speaks for its host or, where workers differ (one per
GPU, say), each is asked and those of a host take turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from perfkit.errors import BadParameterError
from perfkit.findings.text import plain
from perfkit.fleet.task import Member

if TYPE_CHECKING:
    from collections.abc import Mapping

EACH = ("host", "worker")


def members(
    workers: Mapping[str, Mapping[str, Any]], *, each: str = "host"
) -> tuple[Member, ...]:
    """Who is asked, in the order of hosts.

    Args:
        workers: By address, what the scheduler knows of each worker.
        each: ``"host"`` or ``"worker"``.

    Raises:
        BadParameterError: ``each`` is neither.
    """
    if each not in EACH:
        raise BadParameterError(f"each is {each!r}; give one of {', '.join(EACH)}.")
    by_host: dict[str, list[str]] = {}
    for address in sorted(workers):
        by_host.setdefault(_host(address, workers[address]), []).append(address)
    return tuple(
        Member(key=address, host=host, name=_name(host, address, workers, each))
        for host in sorted(by_host, key=_by_numbers)
        for address in by_host[host][: None if each == "worker" else 1]
    )


def _name(
    host: str, address: str, workers: Mapping[str, Mapping[str, Any]], each: str
) -> str:
    if each == "host":
        return plain(host, 60)
    name = plain(str(workers[address].get("name", "")), 60)
    return f"{plain(host, 60)} {name if name and name != address else _port(address)}"


def _host(address: str, about: Mapping[str, Any]) -> str:
    return str(about.get("host") or urlsplit(address).hostname or address)


def _port(address: str) -> str:
    return address.rpartition(":")[2]


def _by_numbers(host: str) -> list[tuple[int, str]]:
    """So that 10.0.0.9 stands before 10.0.0.10."""
    return [(int(part) if part.isdigit() else -1, part) for part in host.split(".")]
