"""The steps of a loop of one's own, marked: ``for batch in perfkit.steps(data): ...``.

On its own a mark passes the batches through and notes when it was asked for the next
one: what lies between is the body of the loop, the rest is the wait for input. While a
training is diagnosed, whoever listens here hears of the steps, and says what data the
loop is given.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from perfkit import units

Batch = TypeVar("Batch")
# Waiting for a device at every step would take from it what it does ahead.
_SYNC_EVERY_S = 0.5


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
        The same batches. After the loop it shows how long a step took, and the share of
        it that waited for input.
    """
    return Steps(data)


class Steps(Generic[Batch]):
    """The batches of a loop, and where the time of its steps went.

    Args:
        data: What the loop takes its batches from.
        clock: Seconds, from anywhere.

    Attributes:
        count: Steps made, the first apart.
        first_s: Seconds of the first step, with all that is made ready in it.
        input_s: Seconds that the other steps waited for their batches, all together.
        body_s: Seconds that their bodies took, all together.
    """

    def __init__(
        self, data: Iterable[Batch], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._data, self._clock = data, clock
        self._first, self._synced = True, clock()
        self.count = 0
        self.first_s = self.input_s = self.body_s = 0.0

    def __iter__(self) -> Iterator[Batch]:
        """Give one batch after another."""
        if _Listening.to is not None:
            return _Listening.to.batches(self._data)
        return self._time_batches()

    def __len__(self) -> int:
        """Batches of the data, where they can be counted."""
        return len(self._data)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        """Data that cannot be counted are data."""
        return True

    @property
    def step_s(self) -> float | None:
        """Seconds of a step, the first apart; None where there was no other."""
        return (self.input_s + self.body_s) / self.count if self.count else None

    @property
    def input_share(self) -> float | None:
        """The share of a step spent waiting for input; None where none was timed."""
        spent = self.input_s + self.body_s
        return self.input_s / spent if spent > 0 else None

    def _time_batches(self) -> Iterator[Batch]:
        batches, wait_start = iter(self._data), self._clock()
        for batch in batches:
            body_start = self._clock()
            try:
                yield batch
            except GeneratorExit:
                self._add(body_start - wait_start, self._clock() - body_start)
                raise
            body_end = self._clock()
            if body_end - self._synced > _SYNC_EVERY_S:
                _wait()
                body_end = self._synced = self._clock()
            self._add(body_start - wait_start, body_end - body_start)
            wait_start = body_end
        ended = self._clock()
        _wait()
        # What the device still had to do; it belongs to the first step if to any.
        self.body_s += self._clock() - ended if self.count else 0.0

    def _add(self, input_s: float, body_s: float) -> None:
        if self._first:
            self._first, self.first_s = False, input_s + body_s
            return
        self.count += 1
        self.input_s += input_s
        self.body_s += body_s

    def __repr__(self) -> str:
        """Say where the time of a step went."""
        if self._first:
            return "perfkit.steps: no step yet."
        first = f"The first step took {units.seconds(self.first_s)} and does not count."
        step_s, share = self.step_s, self.input_share
        if step_s is None or share is None:
            return f"perfkit.steps: 1 step. {first}"
        rows = (
            ("waiting for input", step_s * share, share),
            ("body of the loop", step_s * (1 - share), 1 - share),
        )
        lines = [f"{n:<18}{units.seconds(s):>10}{p:>7.0%}" for n, s, p in rows]
        head = f"{self.count} steps, {units.seconds(step_s)} each:"
        return "\n".join((head, *lines, first))


def _wait() -> None:
    """Wait until a device has done what it was given, if there may be one."""
    if "tensorflow" in sys.modules:
        sys.modules["tensorflow"].test.experimental.sync_devices()
