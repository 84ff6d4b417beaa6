"""The steps of a loop of one's own, marked: ``for batch in perfkit.steps(data): ...``.

On its own a mark passes the batches through. While a training is diagnosed, whoever
listens here hears of the steps, and says what data the loop is given.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

Batch = TypeVar("Batch")


class Listener(Protocol):
    """Who hears of the steps of a loop while it runs."""

    def batches(self, data: Any) -> Iterator[Any]:
        """Give the loop its batches; each one asked for ends the step before."""


class _Listening:
    """Who listens in this process; a diagnosis runs one training in each."""

    to: Listener | None = None


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let a listener hear of every step that is marked meanwhile."""
    before, _Listening.to = _Listening.to, listener
    try:
        yield
    finally:
        _Listening.to = before


def steps(data: Iterable[Batch]) -> "Steps[Batch]":
    """Mark the steps of your own loop: ``for batch in perfkit.steps(data): ...``.

    Args:
        data: The source of the loop's batches, such as a ``tf.data.Dataset``.

    Returns:
        The same batches.
    """
    return Steps(data)


class Steps(Generic[Batch]):
    """The batches of a loop."""

    def __init__(self, data: Iterable[Batch]) -> None:
        self._data = data

    def __iter__(self) -> Iterator[Batch]:
        """Give one batch after another."""
        if _Listening.to is not None:
            return _Listening.to.batches(self._data)
        return iter(self._data)

    def __len__(self) -> int:
        """Batches of the data, where they can be counted."""
        return len(self._data)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        """Data that cannot be counted are data."""
        return True
