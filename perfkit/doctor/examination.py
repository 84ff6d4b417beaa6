"""What one look at a machine has shown: the machine, and what is to be said of it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perfkit.findings.record import Finding
    from perfkit.machine.check import Check
    from perfkit.machine.record import Machine

_SCHEMA = 1
_TOLD = ("id", "status", "title", "evidence", "why", "remedy")


@dataclass(frozen=True, kw_only=True)
class Examination:
    """A machine and its checks; it shows itself as a page.

    Attributes:
        machine: What it is.
        checks: What can be said of it, what costs most first.
        ladder: How fast each of its parts is; None where that was not measured.
        missed: Why a part of the look did not take place, a sentence each.
        stopped: Whether it was interrupted before it had seen everything.
    """

    machine: Machine
    checks: tuple[Check, ...]
    ladder: Finding | None = None
    missed: tuple[str, ...] = ()
    stopped: bool = False

    @property
    def wrong(self) -> tuple[Check, ...]:
        """The checks that fail or warn, what costs most first."""
        found = [c for c in self.checks if c.status in ("fail", "warn")]
        return tuple(sorted(found, key=lambda check: -check.cost))

    @property
    def fails(self) -> bool:
        """Whether TensorFlow cannot use what is there; a warning is no failure."""
        return any(check.status == "fail" for check in self.checks)

    @property
    def well(self) -> tuple[str, ...]:
        """The titles of the checks that are ok, each once."""
        titles = (check.title for check in self.checks if check.status == "ok")
        return tuple(dict.fromkeys(titles))

    def answer(self) -> str:
        """Whether TensorFlow can use a GPU here, in a sentence."""
        from perfkit.doctor.answer import answer

        return answer(self.machine, self.checks)

    def summary(self) -> str:
        """How many checks are well, and which the machine gives no answer to."""
        well = sum(check.status == "ok" for check in self.checks)
        said = f"{well} {'check is' if well == 1 else 'checks are'} ok."
        titles = (c.title for c in self.checks if c.status == "unknown")
        unknown = dict.fromkeys(titles)
        return f"{said} Not known here: {'; '.join(unknown)}." if unknown else said

    def to_json(self) -> str:
        """The machine and its checks, for a program."""
        told = [asdict(check) for check in self.checks]
        document: dict[str, Any] = {
            "schema": _SCHEMA,
            "machine": asdict(self.machine),
            "checks": [{name: check[name] for name in _TOLD} for check in told],
        }
        if self.ladder:
            document["ladder"] = {
                "file": self.ladder.path.name if self.ladder.path else None,
                "stopped": self.ladder.stopped,
                "verdict": self.ladder.verdict.headline,
            }
        return json.dumps(_finite(document), indent=1, allow_nan=False)

    def __repr__(self) -> str:
        from perfkit.doctor.page import in_text

        return in_text(self)

    def _repr_html_(self) -> str:
        from perfkit.doctor.card import in_html

        return in_html(self)


def _finite(value: Any) -> Any:
    """The same, where a number that JSON does not have is not known."""
    if isinstance(value, dict):
        return {str(name): _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
