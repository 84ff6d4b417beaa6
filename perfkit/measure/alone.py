"""One run at a time: two at once would measure each other.

Whoever measures holds a lock on a file that all programs of this user share, so a panel
waits for another panel, for a run in a terminal and for another notebook's. The system
lets go of it when its holder ends, in whatever way.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

_SLICE_S = 0.1
# Others may write into the folder: a link that lies there is not followed.
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


def lock_file() -> Path:
    """The file that is locked; the user's number keeps users apart."""
    return Path(tempfile.gettempdir()) / f"perfkit-measuring-{os.getuid()}.lock"


class Alone:
    """The right to measure; ``wait`` takes it, ``let_go`` gives it back."""

    def __init__(self) -> None:
        self._held: int | None = None

    def wait(self, stopped: threading.Event) -> Iterator[None]:
        """Take it; yields every 0.1 s while another run holds it, until ``stopped``."""
        try:
            held = os.open(lock_file(), _FLAGS, 0o600)
        except OSError:
            # Where nothing can be written nobody can wait for anybody.
            return
        self._held = held
        while not stopped.is_set() and not _locked(held):
            yield
            time.sleep(_SLICE_S)

    def let_go(self) -> None:
        """Give it back, if it was taken."""
        if self._held is not None:
            os.close(self._held)
            self._held = None


def _locked(file: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
