"""Try a setting of TensorFlow that a process can choose only once.

Which GPUs are visible, how their memory is taken, how many logical devices there are:
such settings hold from the first operation to the end of the process. So each is tried
in a process of its own.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

from perfkit.errors import BadParameterError, RunError
from perfkit.machine.starting import unlogged
from perfkit.measure.processes import in_process
from perfkit.measure.tick import Note

_RESULT = "result"


def fresh(
    function: Callable[[Any], Any],
    /,
    *,
    timeout: float = 60.0,
    memory: float | None = None,
    guess: str = "",
) -> Any:
    """Call a function in a process that has TensorFlow loaded and has not used it.

    What it prints is printed here, without TensorFlow's log. An interrupt ends the
    process.

    Args:
        function: Takes the module ``tensorflow``. What it returns has to be picklable:
            numbers and text, not tensors.
        timeout: Seconds after which it counts as hung.
        memory: MB that it may allocate beside what it starts with; None for all.
        guess: What you expect; it is printed below what the function prints.

    Returns:
        What the function returned.

    Raises:
        BadParameterError: It is no function, or cannot be sent to another process; or
            the memory is no amount.
        RunError: It raised, crashed, hung or ran out of memory; the sentence says
            which. This process goes on in any case.
    """
    if not callable(function):
        raise BadParameterError(
            f"fresh() takes a function, such as `def look(tf): ...`, not {function!r}."
        )
    if memory is not None and not 0 < memory < float("inf"):
        raise BadParameterError(f"memory is {memory!r}; give MB, such as 500.")
    above = None if memory is None else round(memory * 1e6)
    ended = in_process(lambda: _told(function), timeout, above)
    sys.stdout.write(unlogged(ended.tail))
    if guess:
        print("Your guess:", guess)
    if ended.outcome != "completed":
        raise RunError(f"The function {ended.message.rstrip('.')}.")
    return ended.notes.get(_RESULT)


def _told(function: Callable[[Any], Any]) -> Iterator[Note]:
    import tensorflow as tf

    yield Note(_RESULT, function(tf))
