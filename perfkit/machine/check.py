"""One statement about a machine: does this slow training, why, and what to type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One statement about a machine.

    Attributes:
        id: Of the rule, such as ``"cpu-only-build"``.
        status: ``"fail"``: TensorFlow cannot use what is there, or computes wrongly;
            ``"warn"``: it costs speed; ``"unknown"``: this machine does not say.
        title: What is so, in a few words.
        evidence: The values it rests on, in a sentence.
        why: What that means for the speed of a training.
        remedy: The exact command or setting for this system; "" where nothing is
            wrong.
        cost: How much it may cost, for sorting: 1 is everything (no GPU at all), 0
            nothing. A guess at the worst case, not a measurement: it is not shown.
    """

    id: str
    status: Status
    title: str
    evidence: str
    why: str = ""
    remedy: str = ""
    cost: float = 0.0


def fine(id: str, title: str, evidence: str) -> Check:
    """Say that nothing is wrong, and on which values that rests."""
    return Check(id=id, status="ok", title=title, evidence=evidence)
