"""What runs on a worker of a Dask cluster; perfkit is imported there for it."""

from __future__ import annotations

import os
import time
from typing import Any

import dask
from distributed import get_client, get_worker

from perfkit.fleet.outcome import LEASE_S
from perfkit.fleet.supervising import GO_ON, STOP, supervise

_NANNYS = ("pre-spawn-environ", "environ")


class Lease:
    """Whether the asking machine still wants what a member does.

    Args:
        key: The member's.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._over = False
        self._last = time.monotonic()

    def hear(self, event: tuple[float, Any]) -> None:
        """Take in what the asking machine tells, once a second."""
        _, told = event
        self._last = time.monotonic()
        self._over |= bool(told["stop"]) or self._key in told["over"]

    def wanted(self) -> str:
        """``"go on"`` as long as it was heard of and said nothing else."""
        lost = time.monotonic() - self._last > LEASE_S
        return STOP if lost or self._over else GO_ON


def measure(task: dict[str, Any], key: str, up: str, down: str) -> bytes:
    """Do a task in a process of its own; see ``supervise``.

    Args:
        task: The fields of a ``Task``.
        key: What the asking machine calls this worker.
        up: The topic on which is told what happens.
        down: The topic on which is told whether it is still wanted.
    """
    worker, client, lease = get_worker(), get_client(), Lease(key)
    client.subscribe_topic(down, lease.hear)
    try:
        return supervise(
            task,
            lambda doing: worker.log_event(up, {"key": key, "doing": doing}),
            lease.wanted,
            without=_from_dask(bool(worker.nanny)),
        )
    finally:
        client.unsubscribe_topic(down)


def _from_dask(has_nanny: bool, /) -> set[str]:
    """Variables that Dask sets for its workers, such as one thread for OpenMP.

    They are no part of the machine, and a training in them would be slower than it is.
    """
    set_by = [dask.config.get(f"distributed.nanny.{name}", {}) for name in _NANNYS]
    return {
        name
        for variables in set_by * has_nanny
        for name, value in variables.items()
        if os.environ.get(name) == str(value)
    }
