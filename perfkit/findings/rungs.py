"""What each variant of a ladder counts, where its rate cannot be examples per second.

A ladder's variants are rungs: pieces of work of their own, not ways of doing the same.
Its finding holds a note named ``rungs`` that says of each what is counted, and the most
of it that this machine could do in theory. Notes come from files and are not trusted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perfkit.findings.text import plain
from perfkit.measure.measurement import TWIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perfkit.findings.record import Finding

NOTE = "rungs"
# No part of a machine does as much in a second; a file may say anything.
_LARGEST = 1e30
_UNIT, _GROUP, _WORDS = 20, 30, 400


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One piece of work and the most of it that is possible.

    Attributes:
        unit: What is counted, such as ``"FLOP"``, ``"B"`` or ``"calls"``.
        group: The part of the machine that it tries.
        what: What is done, in a line.
        limit: Units per second that are possible in theory; None where nobody knows.
        limit_from: How that was worked out, in words.
    """

    unit: str
    group: str = ""
    what: str = ""
    limit: float | None = None
    limit_from: str = ""


def note(rungs: Mapping[str, Rung]) -> dict[str, dict[str, Any]]:
    """Write rungs as the note that ``rungs`` reads."""
    return {name: asdict(rung) for name, rung in rungs.items()}


def rungs(notes: Mapping[str, Any]) -> dict[str, Rung]:
    """Read the rungs from a finding's notes; empty where it is no ladder."""
    told = notes.get(NOTE)
    if not isinstance(told, dict):
        return {}
    return {name: _rung(one) for name, one in told.items() if isinstance(one, dict)}


def is_ladder(finding: Finding) -> bool:
    """Whether a finding's variants are rungs."""
    return bool(rungs(finding.notes))


def unit_of(finding: Finding, variant: str) -> str:
    """What a variant's rate counts; the twin counts what the baseline does."""
    told = rungs(finding.notes)
    rung = told.get(finding.baseline if variant == TWIN else variant)
    return rung.unit if rung else "units" if told else "examples"


def _rung(told: dict[str, Any]) -> Rung:
    return Rung(
        unit=_words(told, "unit", _UNIT) or "units",
        group=_words(told, "group", _GROUP),
        what=_words(told, "what", _WORDS),
        limit=_positive(told.get("limit")),
        limit_from=_words(told, "limit_from", _WORDS),
    )


def _positive(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < _LARGEST else None


def _words(told: dict[str, Any], name: str, longest: int) -> str:
    text = told.get(name)
    return plain(text, longest) if isinstance(text, str) else ""
