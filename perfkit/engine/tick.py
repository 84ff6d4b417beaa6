"""What a variant yields while it works: ticks, pauses and notes.

A variant is a generator function. It yields ``READY`` once everything is built, then a
number of examples (or a ``Tick``) each time that many are done *and the device has
finished them*. The trial stamps every yield with a monotonic clock; the variant itself
holds no clock. ``every`` groups short steps into ticks long enough to time.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

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
        if time.perf_counter() - began >= seconds:
            sync()
            yield Tick(examples, parts)
            examples, parts, began = 0, {}, time.perf_counter()
    if examples:
        sync()
        yield Tick(examples, parts)
