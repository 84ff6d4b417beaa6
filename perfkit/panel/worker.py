"""Does what a panel is asked to in a thread, one thing after the other.

A callback of a widget runs in whatever thread the kernel chose for it, or waits behind
a cell. So callbacks only ask: a worker's thread alone runs experiments and changes
widgets. It is there only while there is something to do.
"""

from __future__ import annotations

import collections
import contextvars
import functools
import logging
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Worker:
    """Does tasks in the order in which it is asked to."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: collections.deque[Callable[[], object]] = collections.deque()
        self._lock = threading.Lock()
        self._at_work = False

    def ask(self, task: Callable[[], object]) -> None:
        """Let a task be done after those asked for before; returns at once."""
        # In a context of its own a thread would not know which request of the page it
        # answers; some kernels send nothing then.
        context = contextvars.copy_context()
        with self._lock:
            self._tasks.append(functools.partial(context.run, task))
            if self._at_work:
                return
            self._at_work = True
        threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _work(self) -> None:
        while task := self._next():
            try:
                task()
            # One task that fails must not take those after it along.
            except Exception:
                logging.getLogger(__name__).exception("A panel's task failed.")

    def _next(self) -> Callable[[], object] | None:
        with self._lock:
            self._at_work = bool(self._tasks)
            return self._tasks.popleft() if self._tasks else None
