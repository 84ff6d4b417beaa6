"""The largest batch that fits: doubled until one does not, then bisected."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.experiments.shared import batches
from perfkit.measure.plan import Try

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from perfkit.measure.plan import Tries
    from perfkit.measure.trial import Trial

# Beyond this nobody trains.
_MOST = 2**24
_ASKED = re.compile(r"fits ([\d,]{1,12})\?")
_WITHOUT_LIMIT = "{:,} without the limit"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search has shown so far.

    Attributes:
        fits: The largest batch that was trained on; 0 where none was.
        fails: The smallest that was not; None where all were.
        how: How the trial of that one ended, in words.
        asked: How many batches were tried.
        by_limit: Whether it is the limit that ended it: it ran out of memory, or it
            crashed with the limit and trained without.
    """

    fits: int
    fails: int | None
    how: str
    asked: int
    by_limit: bool

    @property
    def closed(self) -> bool:
        """Whether the search came to its end: the two are one step apart."""
        return self.fails is not None and self.fails - self.fits <= step(self.fits)


def step(size: int) -> int:
    """How finely a size is found out: a sixteenth of it, or a little less."""
    return 1 << max(0, size.bit_length() - 5)


def search(first: int, ask: Callable[[int], Try]) -> Tries:
    """Try sizes until the largest that fits is known to a step.

    Args:
        first: The size to begin with; the nearer, the fewer tries.
        ask: Makes the try of a size; one that completes fits.
    """
    size, low, high = max(1, first - first % step(first)), 0, _MOST + 1
    while low < size < high:
        trial = yield ask(size)
        if trial.outcome == "stopped":
            return
        if trial.outcome == "completed":
            low = size
        else:
            high = size
        size = _next(low, high)


def _next(low: int, high: int) -> int:
    """The size to try now; ``low`` where nothing is left to find out."""
    if high > _MOST:
        return 2 * low
    if low == 0:
        return high // 2
    fine = step(low)
    if high - low <= fine:
        return low
    return low + max(fine, (high - low) // 2 // fine * fine)


def tries(name: str, first: int, memory: int | None) -> Tries:
    """Search with a model from ``MODELS``.

    Args:
        name: Of the model.
        first: The size to begin with.
        memory: Bytes that a trial may allocate; None leaves it to the device.
    """

    def ask(size: int) -> Try:
        trained = functools.partial(batches.fitting, name, size)
        return Try(name=f"fits {size:,}?", work=trained, memory=memory)

    ended: list[Trial] = []
    asking = search(first, ask)
    wanted = next(asking)
    while True:
        trial = yield wanted
        ended.append(trial)
        try:
            wanted = asking.send(trial)
        except StopIteration:
            break
    failed = found(ended)
    if failed and failed.fails and not failed.by_limit and memory is not None:
        # Some libraries crash where they are given no memory: swap the limit alone.
        again = functools.partial(batches.fitting, name, failed.fails)
        yield Try(name=_WITHOUT_LIMIT.format(failed.fails), work=again)


def found(trials: Iterable[Trial]) -> Found | None:
    """Read what a search has shown; None where there was none."""
    kept = [trial for trial in trials if trial.is_try and trial.outcome != "stopped"]
    asked = {size: trial for trial in kept if (size := _size(trial.variant))}
    if not asked:
        return None
    fits = [size for size, trial in asked.items() if trial.outcome == "completed"]
    fails = min((size for size in asked if size not in fits), default=None)
    ended = asked[fails] if fails else None
    return Found(
        fits=max(fits, default=0),
        fails=fails,
        how=(ended.message or ended.outcome) if ended else "",
        asked=len(asked),
        by_limit=ended is not None and _by_limit(ended, fails or 0, kept),
    )


def _size(name: str) -> int:
    said = _ASKED.fullmatch(name)
    return int(said[1].replace(",", "") or 0) if said else 0


def _by_limit(ended: Trial, size: int, trials: Iterable[Trial]) -> bool:
    if ended.outcome == "out-of-memory":
        return True
    free = _WITHOUT_LIMIT.format(size)
    return any(t.variant == free and t.outcome == "completed" for t in trials)
