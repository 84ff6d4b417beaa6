"""What a member of a fleet is asked to do, and who the members are."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, Literal

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
    from perfkit.machine import packages

    return packages.versions(sys.path).get("tensorflow", "")
