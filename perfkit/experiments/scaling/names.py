"""What the arms of a run on several devices are called, and what their names tell.

A name says what its devices are, so that no number is read as one of GPUs that logical
devices have made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfkit.experiments.scaling.devices import GPU, LOGICAL, Kind

# The ways that differ from the plain one.
STRATEGY, OWN, FED = "strategy", "own gradients", "fed"
LINK = "the link alone"
# What preparing told of the run.
NOTE = "scaling"
SHARED = (
    "Logical devices share this processor: this shows how the method works and what "
    "the strategy itself costs, not what more GPUs would bring."
)
_NAME = re.compile(rf"(\d{{1,3}}) (GPU|{LOGICAL})s?(?:, ({STRATEGY}|{OWN}|{FED}))?")


@dataclass(frozen=True)
class Named:
    """What a name tells: the devices, how many, and the way ("" for the plain one)."""

    kind: Kind
    count: int
    way: str


def name_of(kind: Kind, count: int, way: str = "") -> str:
    """What the arm of so many devices is called."""
    return f"{of(kind, count)}{', ' * bool(way)}{way}"


def of(kind: Kind, count: int) -> str:
    """So many devices, in words."""
    return f"{count} {kind}{'s' * (count != 1)}"


def read(name: str) -> Named | None:
    """Read the name of an arm; None where it is none of these."""
    found = _NAME.fullmatch(name)
    if found is None or int(found[1]) < 1:
        return None
    return Named(GPU if found[2] == GPU else LOGICAL, int(found[1]), found[3] or "")
