"""Try a setting of TensorFlow that a process can choose only once.

Which GPUs are visible, how their memory is taken, how many logical devices there are:
such settings hold from the first operation to the end of the process. So each is tried
in a process of its own.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from perfkit.errors import BadParameterError, RunError
from perfkit.machine.starting.log import unlogged
from perfkit.measure.launcher import launcher
from perfkit.measure.tick import Note
from perfkit.measure.trial import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SLICE_S = 0.1
_RESULT = "result"


def fresh(function: Callable[[Any], Any], /, *, timeout: float = 60.0) -> Any:
    """Call a function in a process that has TensorFlow loaded and has not used it.

    What it prints is printed here, without TensorFlow's log. An interrupt ends the
    process.

    Args:
        function: Takes the module ``tensorflow``. What it returns has to be picklable:
            numbers and text, not tensors.
        timeout: Seconds after which it counts as hung.

    Returns:
        What the function returned.

    Raises:
        BadParameterError: It is no function, or cannot be sent to another process.
        RunError: It raised, crashed, hung or ran out of memory; the sentence says
            which. This process goes on in any case.
    """
    if not callable(function):
        raise BadParameterError(
            f"fresh() takes a function, such as `def look(tf): ...`, not {function!r}."
        )
    while not launcher().wait(_SLICE_S):
        pass
    try:
        running = launcher().start(lambda: _told(function), 0, Limits(silence=timeout))
    except TypeError as error:
        raise BadParameterError(
            f"The function cannot be sent to another process ({error}); make what it "
            "needs inside it."
        ) from error
    found: dict[str, Any] = {}
    try:
        while running.outcome is None:
            messages = running.poll(_SLICE_S)
            found |= {m[1]: m[2] for m in messages if m[0] == "note"}
    finally:
        running.kill("stopped", "was interrupted")
    sys.stdout.write(unlogged(running.tail))
    if running.outcome != "completed":
        raise RunError(f"The function {running.message.rstrip('.')}.")
    return found.get(_RESULT)


def _told(function: Callable[[Any], Any]) -> Iterator[Note]:
    import tensorflow as tf

    yield Note(_RESULT, function(tf))
