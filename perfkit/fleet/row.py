"""What is known of one member while a fleet runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfkit.fleet.outcome import Outcome
    from perfkit.fleet.task import Member, Task


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
