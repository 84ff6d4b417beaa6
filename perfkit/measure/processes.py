"""Work in a fresh process that tells notes, and how that ended."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from perfkit.errors import BadParameterError
from perfkit.measure.launcher import launcher
from perfkit.measure.tick import Note
from perfkit.measure.trial import Limits, Outcome

_SLICE_S = 0.1


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        notes: What it told, by name.
        outcome: As a trial's.
        message: One sentence on an outcome other than ``completed``, without a subject.
        tail: The end of what it printed.
    """

    notes: dict[str, Any]
    outcome: Outcome = "completed"
    message: str = ""
    tail: str = ""


def in_process(
    work: Callable[[], Iterator[Note]], longest: float, memory: int | None = None
) -> Ended:
    """Run ``work`` in a process that has TensorFlow loaded and has not used it.

    An interrupt ends the process.

    Args:
        work: Yields notes.
        longest: Seconds without any before it counts as hung.
        memory: Bytes that it may allocate beside what it starts with; None for all.

    Raises:
        BadParameterError: It cannot be sent to another process.
    """
    while not launcher().wait(_SLICE_S):
        pass
    try:
        running = launcher().start(work, 0, Limits(silence=longest, memory=memory))
    except TypeError as error:
        raise BadParameterError(
            f"The function cannot be sent to another process ({error}); make what it "
            "needs inside it."
        ) from error
    notes: dict[str, Any] = {}
    try:
        while running.outcome is None:
            messages = running.poll(_SLICE_S)
            notes |= {m[1]: m[2] for m in messages if m[0] == "note"}
    finally:
        running.kill("stopped", "was interrupted")
    return Ended(notes, running.outcome, running.message, running.tail)
