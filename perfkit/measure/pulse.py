"""A fixed chain of arithmetic that shows how fast the machine itself is just now.

Clock changes, a shared core and a busy host slow it as they slow a training, and
nothing that the training does to its own code can. Its time is the thread's CPU time,
so waiting for a turn is not in it: for that, look at the load of others.
"""

from __future__ import annotations

import time

# About 1 ms of integer arithmetic on a core of 2020.
_LINKS = 12_000
_MASK = (1 << 31) - 1


def pulse() -> float:
    """Run the chain once and return its speed, in chains per second of CPU time."""
    number = 1
    began = time.thread_time_ns()
    for _ in range(_LINKS):
        number = (number * 48_271 + 11) & _MASK
    return 1e9 / max(1, time.thread_time_ns() - began)
