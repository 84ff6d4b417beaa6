"""Work in a fresh process that tells notes, and how that ended.

``fresh`` tries settings of TensorFlow that a process can choose only once: which GPUs
are visible, how their memory is taken, how many logical devices there are.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from perfkit.engine.launcher import launcher
from perfkit.engine.tick import Note
from perfkit.engine.trial import Limits, Outcome
from perfkit.errors import BadParameterError, RunError
from perfkit.machine.starting import unlogged

_SLICE_S = 0.1
_RESULT = "result"


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
    try:
        while running.outcome is None:
            running.poll(_SLICE_S)
    finally:
        running.kill("stopped", "was interrupted")
    return Ended(running.notes, running.outcome, running.message, running.tail)


def fresh(
    function: Callable[[Any], Any],
    /,
    *,
    timeout: float = 60.0,
    memory: float | None = None,
    guess: str = "",
) -> Any:
    """Call a function in a fresh process that has loaded, but not used, TensorFlow.

    Its output appears here, without TensorFlow's log. An interrupt ends the process.

    Args:
        function: Takes the module ``tensorflow``. It must return something picklable:
            numbers and text, not tensors.
        timeout: Seconds after which it counts as hung.
        memory: MB that it may allocate on top of its start; None for no limit.
        guess: What you expect, to print below the function's output.

    Returns:
        What the function returned.

    Raises:
        BadParameterError: It is not a function, cannot be sent to another process, or
            the memory is not an amount.
        RunError: It raised, crashed, hung or ran out of memory; the sentence says
            which. This process continues in any case.
    """
    if not callable(function):
        raise BadParameterError(
            f"fresh() takes a function, such as `def look(tf): ...`, not {function!r}."
        )
    if memory is not None and not 0 < memory < float("inf"):
        raise BadParameterError(f"memory is {memory!r}; give MB, such as 500.")
    above = None if memory is None else round(memory * 1e6)
    ended = in_process(lambda: _note_result(function), timeout, above)
    sys.stdout.write(unlogged(ended.tail))
    if guess:
        print("Your guess:", guess)
    if ended.outcome != "completed":
        raise RunError(f"The function {ended.message.rstrip('.')}.")
    return ended.notes.get(_RESULT)


def _note_result(function: Callable[[Any], Any]) -> Iterator[Note]:
    import tensorflow as tf

    yield Note(_RESULT, function(tf))
