"""What slows a training of one's own, measured by swapping one thing at a time.

A script of the user's own takes from here what marks the steps of its loop, so nothing
else is loaded. On its own a mark passes the batches through. While a training is
diagnosed, whoever listens here hears of the steps, and says what data the loop is
given.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

Batch = TypeVar("Batch")
# What gives the loops of this process their batches; the last one does.
_listeners: list[Callable[[Any], Iterator[Any]]] = []


@contextlib.contextmanager
def listening(batches: Callable[[Any], Iterator[Any]]) -> Iterator[None]:
    """Let this give marked loops their batches; each one ends the step before."""
    _listeners.append(batches)
    try:
        yield
    finally:
        _listeners.pop()


class steps(Generic[Batch]):
    """Mark the steps of your own loop: ``for batch in perfkit.steps(data): ...``.

    The batches stay the same.

    Args:
        data: The source of the loop's batches, such as a ``tf.data.Dataset``.
    """

    def __init__(self, data: Iterable[Batch]) -> None:
        self._data = data

    def __iter__(self) -> Iterator[Batch]:
        """Give one batch after another."""
        return _listeners[-1](self._data) if _listeners else iter(self._data)

    def __len__(self) -> int:
        """Batches of the data, where they can be counted."""
        return len(self._data)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        """Data that cannot be counted are data."""
        return True
