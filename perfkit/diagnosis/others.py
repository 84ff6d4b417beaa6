"""Which of the user's own programs took most of the processor meanwhile."""

from __future__ import annotations

import contextlib
import os

import psutil


class Others:
    """The user's programs apart from this one, and what they have used since."""

    def __init__(self) -> None:
        self._before = _used()

    def busiest(self) -> str:
        """The name of the one that used most since; "" where none did much."""
        gone = {
            (pid, name): seconds - self._before.get((pid, name), 0.0)
            for (pid, name), seconds in _used().items()
        }
        one = max(gone, key=lambda key: gone[key], default=None)
        return one[1] if one is not None and gone[one] > 1.0 else ""


def _used() -> dict[tuple[int, str], float]:
    """CPU seconds of each process of this user, those of this program left out."""
    found: dict[tuple[int, str], float] = {}
    with contextlib.suppress(psutil.Error, AttributeError):
        ours = {
            os.getpid(),
            *(p.pid for p in psutil.Process().children(recursive=True)),
        }
        user = os.getuid()
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.pid not in ours and process.uids().real == user:
                    used = sum(process.cpu_times()[:2])
                    # A name, never a path: that would tell of the user's folders.
                    found[process.pid, os.path.basename(process.name())] = used
    return found
