"""How each member of a fleet ended, and all of them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from perfkit.findings.record import Finding
from perfkit.passports.record import Passport

if TYPE_CHECKING:
    from pathlib import Path

    from perfkit.fleet.task import Member

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
