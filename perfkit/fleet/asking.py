"""One question, asked of every member of a fleet at once; those of a host take turns.

Nobody is waited for longer than the budget and half a minute, and whoever dies, hangs
or falls silent is an outcome with a sentence, while the others go on.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import secrets
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, get_args

from perfkit import units
from perfkit.errors import BadFileError, BadParameterError, PerfkitError
from perfkit.findings import reading, store
from perfkit.findings.text import plain
from perfkit.fleet import outcome
from perfkit.fleet.outcome import (
    LEASE_S,
    Broken,
    Doing,
    Gathered,
    Home,
    How,
    Left,
    Outcome,
    Row,
)
from perfkit.passports import passport as machines_passport
from perfkit.passports.passport import Passport

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Sequence

    from perfkit.findings.record import Finding
    from perfkit.fleet.outcome import Member, News, Task


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
                outcome.mark(self.rows, self._now)
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
            how: How = "cut off" if silent > outcome.SILENT_S else "timed out"
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
    if silent > outcome.SILENT_S:
        return (
            f"Nothing was heard of it for {units.seconds(round(silent))}, last at "
            f"{units.percent(row.share)} of its run: its network is cut, or the "
            "machine stands still."
        )
    return f"It did not end in time; the last that it told: {row.doing}."


PASSPORTS = "perfkit-passports"
_LONGEST = 400
# A text within a text may be twice as long.
_LARGEST_BYTES = 2 * reading.LARGEST_BYTES
_WHAT = "what it sent"


@dataclass(frozen=True)
class Keeper:
    """Reads and saves what comes home, at once.

    Args:
        folder: Where it is saved; None for a folder here by the name of its kind.
    """

    folder: Path | None = None

    def outcome(
        self, member: Member, task: Task, data: bytes, seconds: float
    ) -> Outcome:
        """Say how a member ended that sent this."""
        try:
            how, why, document = _parts(data)
            found = self._kept(document, task) if document else None
        except PerfkitError as error:
            said = f"What it sent was not kept: {error}"
            return Outcome(member=member, how="failed", said=said, seconds=seconds)
        return Outcome(
            member=member,
            how=how,
            said=_said(how, why, found, task),
            seconds=seconds,
            document=found,
        )

    def _kept(self, document: str, task: Task) -> Finding | Passport:
        data = document.encode()
        if task.what == "passport":
            passport = machines_passport.parsed(data, _WHAT)
            machines_passport.save(passport, self._new_passport())
            return passport
        finding = reading.parsed(data, _WHAT)
        if finding.experiment != task.experiment:
            raise BadFileError(f"{_WHAT} answers another question than was asked.")
        # No machine of a fleet shows recordings, whatever the document says of itself.
        finding = replace(finding, replayed=False)
        store.save(finding, self.folder)
        return finding

    def _new_passport(self) -> Path:
        now = datetime.datetime.now().astimezone()
        name = f"passport-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}.json"
        return (self.folder or Path(PASSPORTS)) / name


def _parts(data: bytes) -> tuple[How, str, str]:
    """How it ended, why, and the document as a text.

    Raises:
        BadFileError: It is nothing that a member of a fleet sends.
    """
    try:
        told = json.loads(data) if len(data) <= 2 * reading.LARGEST_BYTES else None
    except (ValueError, RecursionError):
        told = None
    match told:
        case {"how": str(how), "why": str(why), "document": str(document)} if (
            how in get_args(How)
        ):
            return how, plain(why, _LONGEST), document  # type: ignore[return-value]
    raise BadFileError(f"{_WHAT} is nothing that perfkit sends.")


def _said(how: How, why: str, found: Finding | Passport | None, task: Task) -> str:
    if found is None:
        return why or "It ended without a word and without a finding."
    said = plain(found.report.verdict.headline, _LONGEST)
    if isinstance(found, Passport):
        said += _another(found, task)
    if how == "completed":
        return said
    return f"{why or 'It was stopped.'} What it measured by then: {said}"


def _another(passport: Passport, task: Task) -> str:
    """That it has another TensorFlow; "" where it has the same or none."""
    version = plain(passport.machine.versions.get("tensorflow", ""), 40)
    if version in ("", task.tensorflow) or not task.tensorflow:
        return ""
    return f"; it has TensorFlow {version}, the asking machine {task.tensorflow}"
