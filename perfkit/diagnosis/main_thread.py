"""What a training may do in the main thread alone, and in a trial has no need to."""

from __future__ import annotations

import signal
import threading
from typing import Any


def stand_in() -> None:
    """Let this process's other threads ask for signal handlers, which are not set.

    A trial makes the training in a thread of its own, and Python refuses handlers
    there. A trial is ended by a signal that no handler hears.
    """
    real = signal.signal

    def asked(number: int, handler: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            return real(number, handler)
        return signal.getsignal(number)

    signal.signal = asked  # type: ignore[assignment]
