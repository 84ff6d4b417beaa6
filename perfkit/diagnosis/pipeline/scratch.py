"""A folder in memory that is gone when its process is, whatever way that went."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from perfkit.measure.worker import MARK

# Files here are held in memory.
_IN_MEMORY = Path("/dev/shm")
# What is open as long as this process lives; its end is what the shells wait for.
_waiting: list[subprocess.Popen[bytes]] = []


def scratch() -> str:
    """Make a folder that is removed once this process has ended.

    Its files lie in memory where the system offers that. There nobody tidies up, and a
    trial is ended by a signal that it cannot hear: a shell waits for the end of its
    standard input and removes the folder then.
    """
    if not _IN_MEMORY.is_dir():
        return tempfile.mkdtemp()
    folder = tempfile.mkdtemp(prefix="perfkit-", dir=_IN_MEMORY)
    _waiting.append(
        subprocess.Popen(
            ["sh", "-c", 'cat >/dev/null; rm -rf "$0"', folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            # What bears the mark of a trial is ended with it.
            env={k: v for k, v in os.environ.items() if k != MARK},
        )
    )
    return folder
