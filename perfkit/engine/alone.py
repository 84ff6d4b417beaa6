"""One run at a time: two at once would measure each other.

Whoever measures holds a lock on a file that all programs of this user share, so a panel
waits for another panel, for a run in a terminal and for another notebook's. The system
lets go of it when its holder ends, in whatever way. The file says who holds it, and
until when.
"""

import contextlib
import fcntl
import math
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from perfkit import units

_SLICE_S = 0.1
_LONGEST = 200
# To load TensorFlow and to prepare what is measured, which no budget holds.
_START_S = 15.0
# Others may write into the folder: a link that lies there is not followed.
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


def lock_file() -> Path:
    """The file that is locked; the user's number keeps users apart."""
    return Path(tempfile.gettempdir()) / f"perfkit-measuring-{os.getuid()}.lock"


def private_folder(path: Path) -> None:
    """Make a folder, and what is missing above it, for this user alone.

    What is there already stays as it is.

    Raises:
        OSError: It cannot be made, or is no folder.
    """
    missing = [parent for parent in path.parents if not parent.exists()]
    for folder in (*reversed(missing), path):
        folder.mkdir(0o700, exist_ok=True)


def remove_left(prefix: str, lock: str) -> None:
    """Remove the temporary folders of processes that were killed, by their prefix.

    Who still needs such a folder holds the file in it that is its lock.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            # Where all may write, others may lay traps.
            if folder.lstat().st_uid == os.getuid():
                with (folder / lock).open("rb+") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)


class Alone:
    """The right to measure; ``wait`` takes it, ``let_go`` gives it back.

    Args:
        holder: Who measures, outside a notebook; shown to those who wait.
        budget: Seconds that it will measure; 0 where nobody knows.
    """

    def __init__(self, holder: str = "another run", budget: float = 0.0) -> None:
        notebook = Path(os.environ.get("JPY_SESSION_NAME", ""))
        in_notebook = notebook.suffix == ".ipynb"
        self._holder = f"the run in {notebook.stem}" if in_notebook else holder
        self._budget = budget
        self._file: int | None = None

    def wait(self, stopped: threading.Event) -> Iterator[str]:
        """Take it; every 0.1 s it says whom it waits for, until ``stopped``."""
        try:
            file = os.open(lock_file(), _FLAGS, 0o600)
        except OSError:
            # Where nothing can be written nobody can wait for anybody.
            return
        if os.fstat(file).st_uid != os.getuid():
            # Whoever laid it there could keep this user waiting for ever.
            os.close(file)
            return
        self._file = file
        while not stopped.is_set():
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            yield _waiting(file)
            time.sleep(_SLICE_S)
        else:
            return
        end = time.monotonic() + self._budget + _START_S if self._budget else 0
        # A full disk costs others the name, and nobody the run.
        with contextlib.suppress(OSError):
            os.ftruncate(file, 0)
            os.pwrite(file, f"{self._holder[:_LONGEST]}\n{end:.0f}".encode(), 0)

    def let_go(self) -> None:
        """Give it back, if it was taken."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _waiting(file: int) -> str:
    """Whom the holder of the file makes wait, as ``"Waiting for X, about 40 s"``."""
    content = os.pread(file, 4 * _LONGEST, 0).decode(errors="replace")
    holder, _, end = content.partition("\n")
    seconds = float(end[:12]) - time.monotonic() if end.isdecimal() else 0.0
    name = holder if holder and holder.isprintable() else "another run"
    if seconds > 0:
        name += f", about {units.seconds(10 * math.ceil(seconds / 10))}"
    return f"Waiting for {name}"
