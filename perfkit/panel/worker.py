"""The thread of a panel, which does one thing at a time, and the cell it belongs to."""

import collections
import contextvars
import functools
import logging
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

from perfkit.errors import RunError

_NO_THREAD = (
    "The system could not start it ({}): close other programs, then press again."
)


class Worker:
    """Does tasks in the order in which it is asked to."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: collections.deque[Callable[[], object]] = collections.deque()
        self._lock = threading.Lock()
        self._at_work = False

    def ask(self, task: Callable[[], object]) -> None:
        """Let a task be done after those asked for before; returns at once.

        Raises:
            RunError: The system has no thread left for it; it is not done.
        """
        # In a context of its own a thread would not know which request of the page it
        # answers; some kernels send nothing then.
        context = contextvars.copy_context()
        with self._lock:
            self._tasks.append(functools.partial(context.run, task))
            if self._at_work:
                return
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self._tasks.clear()
                raise RunError(_NO_THREAD.format(error)) from None
            self._at_work = True

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


class Stoppable(Protocol):
    """What is at work until it is done or stopped."""

    def stop(self) -> None:
        """End the run."""

    def wait(self) -> None:
        """Return once it is not at work."""


# By cell: the execution that made it, and the panel.
_panels: dict[str, list[tuple[str, Stoppable]]] = {}


def take_over(panel: Stoppable, otherwise: str) -> None:
    """Stop what earlier runs of this cell made, and remember what this one makes.

    ``otherwise`` stands for the cell where the front end does not tell it.
    """
    cell, execution = running_cell()
    entries = _panels.get(cell or otherwise, [])
    old = [earlier for by, earlier in entries if by != execution or not execution]
    for earlier in old:
        earlier.stop()
    for earlier in old:
        earlier.wait()
    remaining = [(by, earlier) for by, earlier in entries if earlier not in old]
    _panels[cell or otherwise] = [*remaining, (execution, panel)]


def running_cell() -> tuple[str, str]:
    """The id of the running cell and that of its execution; "" where unknown."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    request: dict[str, Any] = getattr(shell, "get_parent", dict)()
    cell = request.get("metadata", {}).get("cellId", "")
    return str(cell), str(request.get("header", {}).get("msg_id", ""))
