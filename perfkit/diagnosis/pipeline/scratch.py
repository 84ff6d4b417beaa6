"""A folder that is gone when its process is, whatever way that went."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

# Files here are held in memory.
_IN_MEMORY = Path("/dev/shm")
# What is open as long as this process lives; its end is what the shells wait for.
_waiting: list[subprocess.Popen[bytes]] = []


def scratch(*, in_memory: bool) -> str:
    """Make a folder that is removed once this process has ended.

    A trial is ended by a signal that it cannot hear, so it cannot tidy up itself: a
    shell waits for the end of its standard input and removes the folder then.

    Args:
        in_memory: Whether its files lie in memory, where the system offers that.
    """
    where = _IN_MEMORY if in_memory and _IN_MEMORY.is_dir() else None
    folder = tempfile.mkdtemp(prefix="perfkit-", dir=where)
    _waiting.append(
        subprocess.Popen(
            ["sh", "-c", 'cat >/dev/null; rm -rf "$0"', folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    )
    return folder
