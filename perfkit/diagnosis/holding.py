"""A script that stands still at its training call, with all that it holds open.

Were it ended there, it would close its files and remove its temporary folders, and the
training reads them still. So it runs in a thread of its own, which hands over what it
trains and never goes on.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable


class Held:
    """Runs work until that hands something over."""

    def __init__(self) -> None:
        self._told: queue.SimpleQueue[tuple[Any, BaseException | None]] = (
            queue.SimpleQueue()
        )
        self._settings: dict[str, Any] = {}

    def run(self, work: Callable[[], object]) -> Any:
        """Wait until work hands over, and give that; None where it came to its end.

        Raises:
            BaseException: What work raised.
        """
        threading.Thread(target=self._run, args=(work,), daemon=True).start()
        found, error = self._told.get()
        # Keras keeps settings for each thread apart.
        _settings().update(self._settings)
        if error is not None:
            raise error
        return found

    def hand_over(self, found: Any) -> NoReturn:
        """Hand over from within the work, and stand still for ever."""
        self._settings = dict(_settings())
        self._told.put((found, None))
        while True:
            threading.Event().wait()

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            self._told.put((None, error))
        else:
            self._settings = dict(_settings())
            self._told.put((None, None))


def _settings() -> dict[str, Any]:
    """Keras's settings of this thread; where this version has them elsewhere, none."""
    with contextlib.suppress(ImportError, AttributeError):
        from keras.src.backend.common import global_state

        settings: dict[str, Any] = vars(global_state.GLOBAL_STATE_TRACKER)
        return settings
    return {}
