"""Ask something of TensorFlow that takes its devices for good, or may hang on them."""

from __future__ import annotations

import functools
import multiprocessing
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

Answer = TypeVar("Answer")


def asked(function: Callable[[], Answer], longest_s: float) -> Answer | None:
    """Call a function in a process of its own, which is gone afterwards.

    This process must not have used TensorFlow where processes are forked.

    Args:
        function: Its answer is numbers and text.
        longest_s: Seconds after which the process counts as hung.

    Returns:
        Its answer; None where the process ended without one.

    Raises:
        TimeoutError: It hung.
    """
    context = multiprocessing.get_context()
    told, telling = context.Pipe(duplex=False)
    work = functools.partial(_tell, function, telling)
    child = context.Process(target=work, daemon=True)
    child.start()
    telling.close()
    try:
        if not told.poll(longest_s):
            raise TimeoutError(f"no answer within {longest_s:.0f} s")
        answer: Answer = told.recv()
    except EOFError:
        return None
    finally:
        child.kill()
        child.join()
    return answer


def _tell(function: Callable[[], Any], telling: Connection) -> None:
    telling.send(function())
