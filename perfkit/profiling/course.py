"""Which steps of a training warm up, are timed, or are traced: one after another.

The tracer costs something itself. So the same number of steps is timed without it,
several times before and after, in the same process.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

# Steps are warm after so many of them that took so long together, or a hundred.
_FEWEST_WARM, _WARM_S, _MOST_WARM = 3, 1.5, 100
# On either side of the trace blocks of steps are timed for about so long.
_SIDE_S, _MOST_BLOCKS = 2.0, 10


class Profiler(Protocol):
    """What records a trace."""

    def start(self) -> None:
        """Begin to record."""

    def stop(self) -> None:
        """End, and write what was recorded."""

    def mark(self, number: int) -> AbstractContextManager[object]:
        """Mark what is done within it as the step of this number."""


@dataclass(frozen=True)
class Asked:
    """What the next step is for.

    Attributes:
        number: Of a step that is traced; None where none is.
        last: Whether the device has to be done before its time is taken.
    """

    number: int | None = None
    last: bool = False


@dataclass
class Timed:
    """Seconds of steps.

    Attributes:
        untraced: Of a step, for each block of steps without the tracer.
        traced: Of each traced step.
    """

    untraced: list[float] = field(default_factory=list)
    traced: list[float] = field(default_factory=list)


def plan(steps: int, profiler: Profiler, timed: Timed) -> Generator[Asked, float, None]:
    """Ask for one step after another; each is answered by its seconds.

    Args:
        steps: In a block, and in the trace.
        profiler: Is started and stopped between two steps.
        timed: Gets the seconds, as soon as they are known.
    """
    usual = yield from _warm_up()
    blocks = max(1, min(_MOST_BLOCKS, int(_SIDE_S / (steps * usual or _SIDE_S))))
    for _ in range(blocks):
        timed.untraced.append((yield from _block(steps)))
    profiler.start()
    traced = []
    for number in range(steps):
        traced.append((yield Asked(number, last=number == steps - 1)))
    profiler.stop()
    timed.traced = traced
    for _ in range(blocks):
        timed.untraced.append((yield from _block(steps)))


def _warm_up() -> Generator[Asked, float, float]:
    """Ask for steps until they are warm; returns the seconds of the last one."""
    made, spent = 0, 0.0
    while made < _FEWEST_WARM or (spent < _WARM_S and made < _MOST_WARM):
        spent += yield Asked()
        made += 1
    # What a device still has to do for these steps must not count for the next ones.
    yield Asked(last=True)
    return (yield Asked(last=True))


def _block(steps: int) -> Generator[Asked, float, float]:
    """Ask for steps; returns the mean of their seconds."""
    spent = 0.0
    for number in range(steps):
        spent += yield Asked(last=number == steps - 1)
    return spent / steps


class Course:
    """Follows a plan through a training that tells where its steps begin and end.

    Args:
        steps: To trace.
        profiler: Records them.
        sync: Waits until the device has done what it was given.
        clock: Gives seconds.

    Attributes:
        timed: What is known by now.
        made: Steps that have ended.
        over: Whether no more steps are wanted.
    """

    def __init__(
        self,
        steps: int,
        profiler: Profiler,
        sync: Callable[[], object],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.timed, self.made, self.over = Timed(), 0, False
        self._profiler, self._sync, self._clock = profiler, sync, clock
        self._plan = plan(steps, profiler, self.timed)
        self._asked = next(self._plan)
        self._began: float | None = None
        self._mark = contextlib.ExitStack()

    def begin(self) -> None:
        """A step begins."""
        if self._began is not None or self.over:
            # The data ended where this step was to begin: it begins with the next ones.
            return
        self._began = self._clock()
        if self._asked.number is not None:
            self._mark.enter_context(self._profiler.mark(self._asked.number))

    def end(self) -> None:
        """The step has ended."""
        if self._began is None:
            return
        self._mark.close()
        if self._asked.last:
            self._sync()
        spent, self._began = self._clock() - self._began, None
        self.made += 1
        try:
            self._asked = self._plan.send(spent)
        except StopIteration:
            self.over = True
