"""Is a whole process asleep? Seen from outside, because a process asleep tells nothing.

An allocator that gets no memory may wait for some, in the hope that another thread of
the process gives it back. A process that merely lacks a core is not asleep: its threads
are ready to run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_ASLEEP = "S"


class Asleep:
    """Tells for how long all threads of a process have slept without a break.

    Args:
        pid: The process.
        clock: Nanoseconds.
        root: The folder that holds ``proc``; where there is none, nothing ever sleeps.
    """

    def __init__(
        self, pid: int, clock: Callable[[], int], root: Path = Path("/")
    ) -> None:
        self._tasks = root / "proc" / str(pid) / "task"
        self._clock = clock
        self._used: tuple[int, ...] = ()
        self._since_ns = clock()

    def seconds(self) -> float:
        """Look now; 0.0 where it has done anything since the last look."""
        states = [_state(task) for task in self._listed()]
        used = tuple(ticks for _, ticks in states)
        asleep = bool(states) and all(state == _ASLEEP for state, _ in states)
        if not asleep or used != self._used:
            self._used, self._since_ns = used, self._clock()
        return (self._clock() - self._since_ns) / 1e9

    def _listed(self) -> list[Path]:
        try:
            return sorted(self._tasks.iterdir())
        except OSError:
            return []


def _state(task: Path) -> tuple[str, int]:
    """A thread's state and the clock ticks it has worked; "" where it is gone."""
    try:
        # The name before the last bracket may hold anything.
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        return fields[0], int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return "", 0
