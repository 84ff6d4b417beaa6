"""In what two machines and two jobs differ, and one speed over another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# Not for type checkers alone: what is written is held against these types.
from perfkit.measure.statistics import Comparing  # noqa: TC001

Side = Literal["", "A", "B"]


@dataclass(frozen=True, kw_only=True)
class Differs:
    """One thing in which two jobs differ, in words."""

    what: str
    a: str
    b: str


@dataclass(frozen=True, kw_only=True)
class MachineDiffers:
    """One thing in which two machines differ.

    Attributes:
        what: Such as ``"cores granted"``.
        a: Of A, with its unit; ``b`` of B.
        topic: Differences of one topic are one cause, such as ``"core speed"``.
        parts: What of a training's step it can slow.
        slower: The machine that it slows; "" where the records alone do not say.
        sign: Which rungs would show it; "" where none does. See ``causes``.
    """

    what: str
    a: str
    b: str
    topic: str
    parts: tuple[str, ...] = ()
    slower: Side = ""
    sign: str = ""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """B's speed over A's, with its 95 % interval and what that shows.

    Attributes:
        shared: How much of the interval all ratios of the two machines have in common,
            because a machine rises and falls as a whole: half of it, of the logarithm.
    """

    ratio: float
    low: float
    high: float
    verdict: Comparing
    shared: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RungRatio:
    """One rung on both machines.

    Attributes:
        a: Units per second on A, ``b`` on B; None where it was not measured.
        speed: None where the two cannot be held against each other.
        missing: Why not, in a sentence; "" where they can.
    """

    name: str
    group: str
    unit: str
    a: float | None = None
    b: float | None = None
    speed: Ratio | None = None
    missing: str = ""
