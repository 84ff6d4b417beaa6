"""What a variant yields while it works, and what came of it: ticks, and its trial.

A variant is a generator function. It yields ``READY`` once everything is built, then a
number of examples (or a ``Tick``) each time that many are done *and the device has
finished them*. The trial stamps every yield with a monotonic clock; the variant itself
holds no clock. ``every`` groups short steps into ticks long enough to time. A ``Trial``
is one variant, run once in one fresh process.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# Long enough that stamping and synchronising do not show, short enough that a turn of a
# sixth of a second holds half a dozen.
TICK_S = 0.025


@dataclass(frozen=True)
class Tick:
    """Examples done since the last tick, and where the time went.

    Attributes:
        examples: How many, at least 0.
        parts: Seconds of this tick spent in a named part, such as
            ``{"input": 0.012}`` for the wait on the data.
    """

    examples: int
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Pause:
    """Mark the time since the last tick as no work; it is reported apart, by label.

    Attributes:
        label: The name of that time.
        every: Examples after which it comes again, so that its share belongs to the
            rate: what an epoch's end costs, say, where the trial's epochs are shorter
            than the real ones. 0 where the rate leaves it out.
        within: Of a pause that comes again: examples that were done during it.
    """

    label: str
    every: float = 0
    within: float = 0


@dataclass(frozen=True)
class Note:
    """A fact that the variant found out, kept in the trial; ``value`` is JSON."""

    name: str
    value: Any


READY = Pause("set-up")
# The note by which ``prepare`` takes variants out of a run: why, by the variant's name.
REFUSED = "refused"
Yielded = int | Tick | Pause | Note


def every(
    steps: Iterable[int | Tick | Pause | Note],
    *,
    seconds: float = TICK_S,
    sync: Callable[[], object] = lambda: None,
) -> Iterator[Tick | Pause | Note]:
    """Group steps into ticks of at least ``seconds``.

    Args:
        steps: Yields the examples of each step, in order.
        seconds: The least length of a tick.
        sync: Waits for the device; called once per tick, just before it ends.

    Yields:
        One ``Tick`` per group; pauses and notes pass through, after the group before.
    """
    examples, parts, began = 0, dict[str, float](), time.perf_counter()
    for step in steps:
        if isinstance(step, Pause | Note):
            if examples:
                sync()
                yield Tick(examples, parts)
            yield step
            examples, parts, began = 0, {}, time.perf_counter()
            continue
        tick = step if isinstance(step, Tick) else Tick(step)
        examples += tick.examples
        for part, spent in tick.parts.items():
            parts[part] = parts.get(part, 0.0) + spent
        if examples and time.perf_counter() - began >= seconds:
            sync()
            yield Tick(examples, parts)
            examples, parts, began = 0, {}, time.perf_counter()
    if examples:
        sync()
        yield Tick(examples, parts)


# The note of a trial that took turns with the others of its round in one process.
ONE_PROCESS = "one process"
# The note of one whose ticks hold whole epochs, whose ends are no pauses of their own.
WHOLE = "whole epochs"
# The note of the losses of a trial: after so many examples, their mean since the last.
LOSSES = "losses"
# The note of a trial that is one run, from its beginning to its end, as one tick.
RUN = "whole run"
# The notes of a training that raised: they tell paths, so who runs it sees them, and no
# file holds them.
PROBLEM, TRACEBACK = "problem", "traceback"
Outcome = Literal["completed", "out-of-memory", "crashed", "timed-out", "stopped"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far a trial may go.

    Attributes:
        silence: Seconds without any sign of life before it counts as hung.
        memory: Bytes it may allocate above what it starts with; None for no limit.
    """

    silence: float = 60.0
    memory: int | None = None


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What one trial measured and how it ended.

    Attributes:
        round: 1 for the first round; 0 for a try outside the rounds.
        outcome: How it ended. Only ``completed`` trials enter a timing.
        message: One sentence on an outcome other than ``completed``.
        started_s: Seconds from the start of the run to the start of the trial.
        wall_s: Seconds from the start of the trial to its end.
        setup_s: Seconds from the start of the trial until it was ready; None if never.
        ticks: ``(seconds since the trial's start, examples since the last tick)``. The
            first entry is the moment it was ready. An entry of 0 examples says that no
            rate can be read from the time before it: a pause, or another's turn.
        turns: Seconds since the trial's start at which each of its turns began; empty
            where it ran in one go.
        pauses: Seconds of each pause, by label.
        recurring: Of a pause that comes again and whose share is part of the rate, by
            label: after how many examples, and how many are done during it.
        parts: Seconds of each tick spent in a part, by name, one number per tick
            with examples.
        notes: What the variant told besides, by name; JSON values.
        seed: What its random numbers started from; equal within a round.
    """

    variant: str
    round: int
    outcome: Outcome
    message: str = ""
    started_s: float = 0.0
    wall_s: float = 0.0
    setup_s: float | None = None
    ticks: tuple[tuple[float, int], ...] = ()
    turns: tuple[float, ...] = ()
    pauses: dict[str, tuple[float, ...]] = field(default_factory=dict)
    recurring: dict[str, tuple[float, float]] = field(default_factory=dict)
    parts: dict[str, tuple[float, ...]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def unit(self) -> str:
        """What its ticks count."""
        return "runs" if RUN in self.notes else "examples"

    @property
    def is_try(self) -> bool:
        """Whether it was run outside the rounds, and so is part of no timing."""
        return self.round == 0

    @property
    def worked(self) -> list[tuple[float, float, int]]:
        """From when to when each of its ticks worked, and on how many examples."""
        return [
            (began, ended, examples)
            for (began, _), (ended, examples) in itertools.pairwise(self.ticks)
            if examples
        ]

    @property
    def has_failed(self) -> bool:
        """Whether it ended neither by itself nor because somebody stopped it."""
        return self.outcome not in ("completed", "stopped")

    def shares_process(self, trial: "Trial") -> bool:
        """Whether both took turns in one process."""
        is_shared = ONE_PROCESS in self.notes and ONE_PROCESS in trial.notes
        return is_shared and self.round == trial.round
