"""What an experiment tries after its rounds: one trial at a time, one by one.

A try answers a question that no rate answers, such as whether a batch fits into memory.
It is recorded like any trial, but of round 0, and enters no timing and no comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfkit.measure.trial import Trial

if TYPE_CHECKING:
    from perfkit.measure.measurement import Measurement

# The seconds that all tries of a run may take: a share of its budget, and never less
# than a handful of short ones needs.
_SHARE = 0.5
_LEAST_S = 15.0


@dataclass(frozen=True, kw_only=True)
class Try:
    """One trial outside the rounds.

    Attributes:
        name: What it answers, such as ``"fits 512?"``; its trial's ``variant``.
        work: Makes the generator that does the work; called in a fresh process.
        memory: Bytes that it may allocate above what it starts with; None for no limit.
        seconds: After so many, counted from when it is ready, it has worked long enough
            and is ended as completed; None where it ends by itself.
    """

    name: str
    work: Callable[[], Iterator[Any]]
    memory: int | None = None
    seconds: float | None = None


Tries = Generator[Try, Trial, None]


def none(_: Measurement) -> Tries:
    """Try nothing."""
    yield from ()


def seconds_for(budget: float) -> float:
    """Seconds that the tries of a run may take together, on top of its budget."""
    return max(_LEAST_S, _SHARE * budget)


def following(asking: Tries, ended: Trial | None) -> Try | None:
    """What is to be tried next; None where there is nothing more.

    Args:
        asking: The tries, under way.
        ended: What came of the last one; None before the first.
    """
    try:
        return next(asking) if ended is None else asking.send(ended)
    except StopIteration:
        return None
