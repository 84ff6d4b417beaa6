"""How much memory does this process hold above what it started with?

The launcher's libraries are mapped into every trial, so the resident set says little of
a training. What counts is private memory that holds data, at its peak.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

_STATUS = Path("/proc/self/status")
_FIELD = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Start:
    """What a process held when it started.

    Attributes:
        resident: Bytes of private memory.
        data: Bytes that it had asked for: what a memory limit counts.
    """

    resident: int
    data: int


def start() -> Start:
    """Look at this process now."""
    if not (status := _status()):
        return Start(psutil.Process().memory_info().rss, 0)
    return Start(status["RssAnon"], status["VmData"])


def above(at_start: Start) -> dict[str, int]:
    """Bytes above the start: ``resident`` at its peak and, if known, ``data`` now."""
    if not (status := _status()):
        return {"resident": max(0, _peak() - at_start.resident)}
    # The peak holds pages of files as well, which are the libraries' code.
    of_files = status["RssFile"] + status["RssShmem"]
    return {
        "resident": max(0, status["VmHWM"] - of_files - at_start.resident),
        "data": max(0, status["VmData"] - at_start.data),
    }


def with_gpu(at_start: Start) -> dict[str, int]:
    """What is above the start here and, as ``gpu_peak``, on the first GPU if any."""
    import tensorflow as tf

    told = above(at_start)
    for device in tf.config.list_logical_devices("GPU")[:1]:
        name = device.name.partition("device:")[2]
        told["gpu_peak"] = int(tf.config.experimental.get_memory_info(name)["peak"])
    return told


def _status() -> dict[str, int]:
    """Bytes by the names that Linux has for them; empty elsewhere."""
    try:
        text = _STATUS.read_text()
    except OSError:
        return {}
    return {name: 1024 * int(kilobytes) for name, kilobytes in _FIELD.findall(text)}


def _peak() -> int:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
