"""Work in a fresh process that tells notes, and how that ended.

``fresh`` tries settings of TensorFlow that a process can choose only once: which GPUs
are visible, how their memory is taken, how many logical devices there are.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

from perfkit.engine.launcher import Started, launcher
from perfkit.engine.trial import Limits, Note
from perfkit.errors import BadParameterError, RunError
from perfkit.machine.starting import unlogged

_SLICE_S = 0.1
_RESULT = "result"


def in_process(
    work: Callable[[], Iterator[Note]], longest: float, memory: int | None = None
) -> Started:
    """Run ``work``, to its end, in a process that has loaded and not used TensorFlow.

    An interrupt ends the process. It hangs if there is no note for ``longest`` seconds,
    and may allocate so many bytes of ``memory``; None for all.

    Raises:
        BadParameterError: It cannot be sent to another process.
    """
    while not launcher().wait(_SLICE_S):
        pass
    running = launcher().start(work, 0, Limits(silence=longest, memory=memory))
    try:
        while running.outcome is None:
            running.poll(_SLICE_S)
    finally:
        running.kill("stopped", "was interrupted")
    return running


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

    def work() -> Iterator[Note]:
        import tensorflow as tf

        yield Note(_RESULT, function(tf))

    ended = in_process(work, timeout, None if memory is None else round(memory * 1e6))
    sys.stdout.write(unlogged(ended.tail))
    if guess:
        print("Your guess:", guess)
    if ended.outcome != "completed":
        raise RunError(f"The function {ended.message.rstrip('.')}.")
    return ended.notes.get(_RESULT)
