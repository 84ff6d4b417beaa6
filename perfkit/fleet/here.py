"""A fleet of one: this machine, without a cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import threading
from typing import TYPE_CHECKING, Any

from perfkit.findings.text import plain
from perfkit.fleet.news import Broken, Doing, Home
from perfkit.fleet.supervising import GO_ON, STOP, supervise
from perfkit.fleet.task import Member

if TYPE_CHECKING:
    from collections.abc import Collection

    from perfkit.fleet.news import News
    from perfkit.fleet.task import Task

_HERE = "here"
_CLOSING_S = 10.0


class Here:
    """This machine as the only member.

    Attributes:
        members: That one.
    """

    def __init__(self) -> None:
        self.members = (Member(key=_HERE, host=_HERE, name="this machine"),)
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, member: Member, task: Task) -> None:
        """Let it do a task."""
        told = dataclasses.asdict(task)
        self._thread = threading.Thread(target=self._do, args=(told,), daemon=True)
        self._thread.start()

    def heard(self, timeout: float) -> list[News]:
        """Wait so long for news, and give it."""
        return drained(self._news, timeout)

    def beat(self, over: Collection[str], *, stop: bool) -> None:
        """Say who has nothing to do any more, and whether all is to be stopped."""
        if stop or over:
            self._over.set()

    def close(self) -> None:
        """End what still runs."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_CLOSING_S)

    def _do(self, told: dict[str, Any]) -> None:
        try:
            data = supervise(told, self._tell, self._wanted)
        except OSError as error:
            self._news.put(Broken(_HERE, f"The system refused: {plain(str(error))}."))
        else:
            self._news.put(Home(_HERE, data))

    def _tell(self, doing: dict[str, Any]) -> None:
        self._news.put(Doing(_HERE, **doing))

    def _wanted(self) -> str:
        return STOP if self._over.is_set() else GO_ON


def drained(news: queue.SimpleQueue[News], timeout: float) -> list[News]:
    """Wait for the first news, and take what came with it."""
    found: list[News] = []
    with contextlib.suppress(queue.Empty):
        found.append(news.get(timeout=timeout))
        while True:
            found.append(news.get_nowait())
    return found
