"""How each member of a fleet ended, and all of them together."""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from perfkit import units
from perfkit.findings.record import Finding
from perfkit.passports.passport import Passport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from perfkit.measure.statistics import Timing


# Who hears nothing for so long takes the other side for gone: a member then ends what
# it runs, and the asking machine goes on without it. So both know that it is over.
LEASE_S = 20.0
# What a member tells, and what it is told, comes this often.
BEAT_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Member:
    """A machine that is asked or, where each is asked, one of its workers.

    Attributes:
        key: What the cluster calls it, such as a worker's address.
        host: The machine's address or name; members of one host take turns.
        name: What a reader is shown.
    """

    key: str
    host: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to measure. It travels as JSON, so it holds nothing else.

    Attributes:
        what: Whether an experiment is run or the machine's passport is made.
        experiment: The experiment's name; "" for a passport.
        parameters: The experiment's parameters that were given.
        budget: Seconds to spend on measuring.
        seconds: After so many it is stopped, and what it has by then counts.
        seed: Where random order and random numbers start; None draws one.
        label: What a passport calls the machine.
        tensorflow: The version that the asking machine has; "" if it has none.
    """

    what: Literal["run", "passport"]
    experiment: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    budget: float
    seconds: float = 0.0
    seed: int | None = None
    label: str = ""
    tensorflow: str = ""


def tensorflow_here() -> str:
    """The version of TensorFlow that Python would import here; "" if there is none."""
    from perfkit.machine import software

    return software.versions(sys.path).get("tensorflow", "")


@dataclass(frozen=True)
class Doing:
    """A member runs: what it does, which share is done, which time is left."""

    key: str
    doing: str = ""
    share: float = 0.0
    left: str = ""


@dataclass(frozen=True)
class Home:
    """A member sent what it has; the bytes are of another machine and not trusted."""

    key: str
    data: bytes


@dataclass(frozen=True)
class Broken:
    """A member could not do it; why, in a sentence."""

    key: str
    why: str


@dataclass(frozen=True)
class Left:
    """A member is no longer part of the fleet."""

    key: str


News = Doing | Home | Broken | Left


@dataclass
class Row:
    """One member, as it stands; times are seconds since the fleet began.

    Attributes:
        member: Who.
        turn: Which of its host's members it is, from 0.
        task: What it does; None before its turn.
        began: When its turn began; None before.
        until: When its turn is over at the latest.
        heard: When it was last heard of; None where it was not yet.
        doing: What it told last, so ``share`` of the run and ``left``.
        silent: For how long nothing was heard of it; "" while it tells something.
        behind: That it is well behind the others, with the evidence; "" if not.
        outcome: How it ended; None before.
    """

    member: Member
    turn: int = 0
    task: Task | None = None
    began: float | None = None
    until: float = 0.0
    heard: float | None = None
    doing: str = ""
    share: float = 0.0
    left: str = ""
    silent: str = ""
    behind: str = ""
    outcome: Outcome | None = None

    @property
    def running(self) -> bool:
        """Whether its turn has begun and is not over."""
        return self.began is not None and self.outcome is None


How = Literal["completed", "stopped", "failed", "left", "cut off", "timed out"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How one member ended.

    Attributes:
        member: Who.
        how: In a word or two.
        said: The finding's headline, or the sentence that says why there is none.
        seconds: From its begin to its end; 0 where it never began.
        document: What it sent; None where it sent nothing that can be read.
    """

    member: Member
    how: How
    said: str
    seconds: float = 0.0
    document: Finding | Passport | None = None

    @property
    def path(self) -> Path | None:
        """Where what it sent is saved."""
        return self.document.path if self.document else None


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """What came home from a fleet.

    Attributes:
        asked: What was asked.
        outcomes: One per member, in the order of hosts.
        seconds: That all of it took.
        stopped: Whether Stop ended it.
    """

    asked: str
    outcomes: tuple[Outcome, ...]
    seconds: float
    stopped: bool = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding that came home."""
        found = (outcome.document for outcome in self.outcomes)
        return tuple(document for document in found if isinstance(document, Finding))

    @property
    def passports(self) -> tuple[Passport, ...]:
        """Every passport that came home."""
        found = (outcome.document for outcome in self.outcomes)
        return tuple(document for document in found if isinstance(document, Passport))

    def __repr__(self) -> str:
        from perfkit.fleet.telling import in_text

        return in_text(self)

    def _repr_html_(self) -> str:
        from perfkit.fleet.showing import in_html

        return in_html(self)


# Fewer others say nothing of what is usual.
_OTHERS = 2
# Of a run: a quarter is more than hosts differ by in getting ready.
_SHARE = 0.25
# And a delay that is worth a word.
_DELAY_S = 5.0
# A member tells something every second.
SILENT_S = 5.0
# Of the others' rate: what is less is worth a look at the machine.
_RATE = 0.8


def mark(rows: Sequence[Row], now: float) -> None:
    """Mark who is silent, or well behind those that have the same turn.

    Args:
        rows: All members.
        now: Seconds since the fleet began.
    """
    for row in rows:
        if row.running:
            others = (_done(o) for o in rows if o.turn == row.turn and o is not row)
            known = [share for share in others if share is not None]
            row.silent = _silent(row, now)
            row.behind = _behind(row, known)


def slow(gathered: Gathered) -> Iterator[str]:
    """A sentence on each machine that is well behind, from rates with intervals."""
    rates = [(o, t) for o in gathered.outcomes if (t := _of_baseline(o))]
    for outcome, timing in rates:
        others = [t for other, t in rates if other is not outcome]
        if len(others) < _OTHERS or timing.high >= _RATE * _median(others):
            continue
        low, high = min(t.rate for t in others), max(t.rate for t in others)
        yield (
            f"{outcome.member.name} is well behind: {timing.variant!r} ran at "
            f"{units.rate_between(timing.rate, timing.low, timing.high)}, on the "
            f"{len(others)} others at {units.rate(low)} to {units.rate(high)}."
        )


def _silent(row: Row, now: float) -> str:
    silent = now - row.heard if row.heard is not None else 0.0
    if silent <= SILENT_S:
        return ""
    return f"nothing heard for {units.seconds(round(silent))}"


def _behind(row: Row, others: list[float]) -> str:
    if len(others) < _OTHERS or row.task is None:
        return ""
    usual = statistics.median(others)
    late = usual - row.share
    if late <= _SHARE or late * row.task.budget < _DELAY_S:
        return ""
    return (
        f"behind: {units.percent(row.share)} done, half of the others "
        f"{units.percent(usual)} or more"
    )


def _done(row: Row) -> float | None:
    """Which share of its run is done; None where nothing can be said."""
    if row.running:
        return row.share
    return 1.0 if row.outcome and row.outcome.how == "completed" else None


def _of_baseline(outcome: Outcome) -> Timing | None:
    found = outcome.document
    if not isinstance(found, Finding):
        return None
    return next((t for t in found.timings if t.variant == found.baseline), None)


def _median(timings: Iterable[Timing]) -> float:
    return statistics.median(timing.rate for timing in timings)
