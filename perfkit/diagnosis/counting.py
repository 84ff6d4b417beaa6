"""Counts the steps of a loop of the user's own, and what the end of an epoch costs.

As with ``fit``, long epochs are ended early and what lies between the last step of one
and the first of the next is told as a pause that comes again once in a real epoch.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from perfkit.diagnosis.epochs import EPOCH_END, Epochs
from perfkit.experiments.shared.loops import wait
from perfkit.measure.tick import READY, TICK_S, Pause, Tick

if TYPE_CHECKING:
    from perfkit.experiments.shared.loops import Told, Turnstile

# The data of the last epoch of a trial began anew, which no real epoch does.
ANEW = "data begin anew"


class Counter:
    """Counts steps and hands them over as ticks.

    Args:
        turnstile: Where they are handed over.
        epochs: Of the loop; where their length is not known, or there is but one, a
            trial is ready after its first step, else after its first epoch.
    """

    def __init__(self, turnstile: Turnstile, epochs: Epochs) -> None:
        self._turnstile, self._epochs = turnstile, epochs
        self._steps = 0
        self._ready = self._at_end = False
        self._next: Pause | None = None
        self._began = time.perf_counter()

    def step(self) -> None:
        """Count one more step that is done."""
        if not self._ready:
            if self._at_end or not self._epochs.steps:
                self._ready, self._next = True, None
                self._tell(READY)
        elif self._next is not None:
            pause, self._next = self._next, None
            self._tell(pause)
        else:
            self._steps += 1
            if time.perf_counter() - self._began >= TICK_S:
                self.tell_steps()

    def end_epoch(self) -> None:
        """Tell what was done; the next step ends what the epoch's end takes."""
        self.tell_steps()
        self._at_end = True
        if not self._epochs.steps:
            self._next = Pause(EPOCH_END)
            return
        batch = self._epochs.batch
        every = self._epochs.steps * batch
        self._next = Pause(EPOCH_END, every=every, within=batch)

    def begin_anew(self) -> None:
        """Leave out the time until the next step has been made."""
        self.tell_steps()
        self._next = Pause(ANEW)

    def set_up_anew(self) -> None:
        """Leave out all until a step of a training made anew is done."""
        self.begin_anew()
        self._ready, self._at_end = False, True

    def tell_steps(self) -> None:
        """End the tick if it holds any step."""
        if self._steps:
            self._tell(Tick(self._steps * self._epochs.batch))

    def _tell(self, what: Told) -> None:
        wait()
        self._turnstile.tell(what)
        self._steps, self._began = 0, time.perf_counter()
