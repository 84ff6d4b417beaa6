"""Ticks out of a ``fit`` that is really running.

A variant is a generator, and nothing can be yielded from inside ``model.fit``. So
``fit`` runs in a thread of its own, with one more callback that counts. Where a tick is
due this callback hands over and stands still; the generator yields the tick, and the
trial stamps it; then ``fit`` goes on. The two threads never run at the same time.

Why that is fair: it is the user's own ``fit``, with its callbacks, epochs and
validation, not an imitation of it. What is added is one callback that counts, and one
hand-over per tick of 25 ms or more; a hand-over took 0.04 ms on two busy cores. Calling
``fit`` again and again for a few steps would add more than 10 ms each time, for a new
iterator and new callbacks.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from perfkit.measure.tick import TICK_S, Note, Pause, Tick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import keras

Told = Tick | Pause | Note


class Left(BaseException):
    """Ends a ``fit`` whose ticks nobody wants any more, whatever else is caught."""


class Turnstile:
    """Lets two threads work in turns: one tells, the other hears."""

    def __init__(self) -> None:
        self._told, self._go_on = threading.Semaphore(0), threading.Semaphore(0)
        self._what: Told = Tick(0)
        self._leaving = False

    def tell(self, what: Told) -> None:
        """Hand over what a trial is to yield, and stand still until it is stamped.

        Raises:
            Left: Nobody listens any more.
        """
        if self._leaving:
            raise Left
        self._what = what
        self._told.release()
        self._go_on.acquire()
        if self._leaving:
            raise Left

    def heard(self, work: Callable[[], object]) -> Iterator[Told]:
        """Run ``work`` in a thread and yield what it tells, until it ends.

        Raises:
            Exception: What ``work`` raised.
        """
        with ThreadPoolExecutor(1, "perfkit-fit") as thread:
            working = thread.submit(work)
            working.add_done_callback(lambda _: self._told.release())
            try:
                while self._told.acquire() and not working.done():
                    yield self._what
                    self._go_on.release()
            except GeneratorExit:
                self._leaving = True
                self._go_on.release()
                return
            working.result()


def ticks(
    fit: Callable[[keras.callbacks.Callback], object],
    *,
    examples: int,
    whole_epochs: int = 0,
    sync: Callable[[], object] = lambda: None,
    stepped: Callable[[int], object] = lambda steps: None,
) -> Iterator[Told]:
    """Run ``fit`` and yield a tick whenever one is long enough.

    Args:
        fit: Calls ``model.fit`` with the callback it is given among the others.
        examples: In a batch.
        whole_epochs: Steps of an epoch, so that each tick holds whole epochs with all
            that their ends cost; 0 to end ticks anywhere.
        sync: Waits for the device; called once per tick, just before it ends.
        stepped: Told how many steps were made, each time some are.
    """
    turnstile = Turnstile()
    callback = _counting(_OpenTick(turnstile, examples, sync, stepped), whole_epochs)
    yield from turnstile.heard(lambda: fit(callback))


class _OpenTick:
    """The steps since the last tick."""

    def __init__(
        self,
        turnstile: Turnstile,
        examples: int,
        sync: Callable[[], object],
        stepped: Callable[[int], object],
    ) -> None:
        self._turnstile, self._examples = turnstile, examples
        self._sync, self._stepped = sync, stepped
        self._steps, self._began = 0, time.perf_counter()
        self._first, self._reached = True, 0

    def begin_epoch(self) -> None:
        """Count the steps of an epoch anew."""
        self._reached = 0

    def reach(self, step: int) -> None:
        """Add the steps since the last call: an execution may hold several."""
        self.add(step - self._reached)
        self._reached = step

    def add(self, steps: int) -> None:
        """Count steps; end the tick if it is the first call or long enough."""
        self._steps += steps
        self._stepped(steps)
        if self._first or time.perf_counter() - self._began >= TICK_S:
            self.end()

    def end(self) -> None:
        """Wait for the device and hand over what was done, if anything was."""
        if not self._steps:
            return
        self._sync()
        self._turnstile.tell(Tick(self._steps * self._examples))
        self._first, self._steps, self._began = False, 0, time.perf_counter()


def _counting(open_: _OpenTick, epoch_steps: int) -> Any:
    from keras.callbacks import LambdaCallback

    if epoch_steps:
        return LambdaCallback(
            on_epoch_end=lambda epoch, logs: open_.add(epoch_steps),
            on_train_end=lambda logs: open_.end(),
        )
    return LambdaCallback(
        on_epoch_begin=lambda epoch, logs: open_.begin_epoch(),
        on_train_batch_end=lambda batch, logs: open_.reach(batch + 1),
        on_train_end=lambda logs: open_.end(),
    )
