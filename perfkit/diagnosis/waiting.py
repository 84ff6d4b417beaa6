"""How long have threads of this process stood ready to run, and got no core?

The Linux scheduler tells it of every thread. A thread that is stopped, as those of a
trial are while others have their turn, waits for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOTE = "waiting"
_NANO = 1e-9


@dataclass(frozen=True)
class Waiting:
    """Seconds of all threads together.

    Attributes:
        ran_s: It ran.
        waited_s: It stood ready to run and got no core.
    """

    ran_s: float
    waited_s: float

    def since(self, before: Waiting) -> Waiting:
        """What came between two readings."""
        return Waiting(self.ran_s - before.ran_s, self.waited_s - before.waited_s)

    def note(self) -> dict[str, Any]:
        """What a trial keeps."""
        return {"ran_s": self.ran_s, "waited_s": self.waited_s}


def read(root: Path = Path("/")) -> Waiting | None:
    """Read all threads of this process together; None where the system does not tell.

    Args:
        root: The folder that holds ``proc``.
    """
    ran = waited = 0.0
    for path in (root / "proc/self/task").glob("*/schedstat"):
        try:
            numbers = path.read_text().split()
            ran, waited = ran + float(numbers[0]), waited + float(numbers[1])
        except (OSError, ValueError, IndexError):
            # A thread may end while it is read.
            continue
    if not ran:
        return None
    return Waiting(ran * _NANO, waited * _NANO)
