"""One question, asked of every member of a fleet at once; those of a host take turns.

Nobody is waited for longer than the budget and half a minute, and whoever dies, hangs
or falls silent is an outcome with a sentence, while the others go on.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from typing import TYPE_CHECKING, Protocol

from perfkit import units
from perfkit.errors import BadParameterError
from perfkit.fleet import behind
from perfkit.fleet.news import Broken, Doing, Home, Left
from perfkit.fleet.outcome import Gathered, How, Outcome
from perfkit.fleet.row import Row
from perfkit.fleet.task import LEASE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Sequence

    from perfkit.fleet.keeping import Keeper
    from perfkit.fleet.news import News
    from perfkit.fleet.task import Member, Task

# Beyond the budget: to connect, to start, to prepare, to come home. Of half a minute it
# leaves what closing takes.
SLACK_S = 25.0
# Of a turn, what starting takes at least, and coming home.
_STARTING_S, _COMING_HOME_S = 8.0, 5.0
# After Stop, what came home by then is all.
_STOPPING_S = 8.0
_SLICE_S = 0.25
_LEAST_S = 1.0


class Fleet(Protocol):
    """Those that can be asked."""

    @property
    def members(self) -> Sequence[Member]:
        """Who they are."""

    def begin(self, member: Member, task: Task) -> None:
        """Let one do a task."""

    def heard(self, timeout: float) -> list[News]:
        """Wait so long for news, and give it."""

    def beat(self, over: Collection[str], *, stop: bool) -> None:
        """Say who has nothing to do any more, and whether all is to be stopped."""

    def close(self) -> None:
        """End what still runs."""


class Asking:
    """A run of a fleet that can be watched and stopped.

    Args:
        fleet: Who is asked.
        task: What; its budget is for all members of a host together.
        keeper: Reads and saves what comes home.
        clock: Gives seconds.
        since: When the time began to run; None for the beginning of the run.

    Attributes:
        rows: What is known of each member.

    Raises:
        BadParameterError: The budget leaves too little to each member of a host.
    """

    def __init__(
        self,
        fleet: Fleet,
        task: Task,
        keeper: Keeper,
        clock: Callable[[], float] = time.monotonic,
        since: float | None = None,
    ) -> None:
        self._since = since
        self._fleet, self._task, self._keeper = fleet, task, keeper
        self._clock = clock
        self._most = task.budget + SLACK_S
        self._stop = threading.Event()
        self._stopped_at: float | None = None
        self._hosts: dict[str, list[Row]] = {}
        for member in fleet.members:
            turns = self._hosts.setdefault(member.host, [])
            turns.append(Row(member=member, turn=len(turns)))
        self.rows = [row for turns in self._hosts.values() for row in turns]
        self._by_key = {row.member.key: row for row in self.rows}
        for turns in self._hosts.values():
            share_of(task.budget, len(turns))
        self._now = 0.0

    def stop(self) -> None:
        """End it and keep what comes home; callable from any thread."""
        self._stop.set()

    def events(self) -> Generator[list[Row]]:
        """Run, and give the rows at least four times a second until all have ended."""
        zero = self._clock() if self._since is None else self._since
        try:
            while any(row.outcome is None for row in self.rows):
                self._now = self._clock() - zero
                self._begin_turns()
                ended = [k for k, row in self._by_key.items() if row.outcome]
                self._fleet.beat(ended, stop=self._stop.is_set())
                for news in self._fleet.heard(_SLICE_S):
                    self._now = self._clock() - zero
                    self._hear(news)
                self._end_what_is_over()
                behind.mark(self.rows, self._now)
                yield self.rows
        finally:
            self._fleet.close()

    def gathered(self) -> Gathered:
        """What came home by now."""
        asked = self._task.experiment or "passport"
        return Gathered(
            asked=asked,
            outcomes=tuple(row.outcome for row in self.rows if row.outcome),
            seconds=self._now,
            stopped=self._stop.is_set(),
        )

    def _begin_turns(self) -> None:
        for turns in self._hosts.values():
            rest = [row for row in turns if row.outcome is None]
            if not rest or rest[0].began is not None:
                continue
            if self._stop.is_set():
                self._end(rest[0], "stopped", "It was stopped before its turn.")
                continue
            length = (self._most - self._now) / len(rest)
            self._begin(rest[0], length, share_of(self._task.budget, len(turns)))

    def _begin(self, row: Row, length: float, budget: float) -> None:
        row.began, row.until = self._now, self._now + length
        row.doing = "starting"
        row.task = dataclasses.replace(
            self._task,
            budget=budget,
            seconds=max(_LEAST_S, length - _COMING_HOME_S),
            label=f"machine {self.rows.index(row) + 1}",
        )
        self._fleet.begin(row.member, row.task)

    def _hear(self, news: News) -> None:
        row = self._by_key.get(news.key)
        if row is None or not row.running or row.task is None:
            return
        row.heard = self._now
        match news:
            case Doing(_, doing, share, left):
                row.doing = doing or row.doing
                row.share, row.left = share, left
            case Home(_, data):
                spent = self._now - (row.began or 0.0)
                row.outcome = self._keeper.outcome(row.member, row.task, data, spent)
            case Broken(_, why):
                self._end(row, "failed", why)
            case Left():
                said = (
                    "Its worker left the cluster during its run: it was killed, "
                    "crashed or was started anew."
                )
                self._end(row, "left", said)

    def _end_what_is_over(self) -> None:
        if self._stop.is_set() and self._stopped_at is None:
            self._stopped_at = self._now
        for row in self.rows:
            if row.running:
                self._end_if_over(row)

    def _end_if_over(self, row: Row) -> None:
        silent = self._now - row.heard if row.heard is not None else 0.0
        stopped = self._stopped_at is not None
        if silent > LEASE_S:
            self._end(row, "cut off", _too_late(row, silent))
        elif stopped and self._now - (self._stopped_at or 0.0) > _STOPPING_S:
            self._end(row, "stopped", "Nothing came home after Stop.")
        elif self._now >= row.until:
            how: How = "cut off" if silent > behind.SILENT_S else "timed out"
            self._end(row, how, _too_late(row, silent))

    def _end(self, row: Row, how: How, said: str) -> None:
        spent = 0.0 if row.began is None else self._now - row.began
        row.outcome = Outcome(member=row.member, how=how, said=said, seconds=spent)


def share_of(budget: float, turns: int) -> float:
    """The seconds that each member of a host measures, where ``turns`` share a budget.

    Raises:
        BadParameterError: They are too few.
    """
    share = min(budget / turns, (budget + SLACK_S) / turns - _STARTING_S)
    if share < _LEAST_S:
        least = max(turns * _LEAST_S, turns * (_LEAST_S + _STARTING_S) - SLACK_S)
        raise BadParameterError(
            f"A budget of {units.seconds(budget)} is too short for a host on which "
            f"{turns} workers take turns; give {units.seconds(least)} or more."
        )
    return share


def _too_late(row: Row, silent: float) -> str:
    if row.heard is None:
        return (
            "It did not begin: its worker is busy with other work, or stands still; "
            "look at the dashboard of the cluster."
        )
    if silent > behind.SILENT_S:
        return (
            f"Nothing was heard of it for {units.seconds(round(silent))}, last at "
            f"{units.percent(row.share)} of its run: its network is cut, or the "
            "machine stands still."
        )
    return f"It did not end in time; the last that it told: {row.doing}."
