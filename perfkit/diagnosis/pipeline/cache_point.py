"""Where a cache would be right: behind work whose result is the same each time.

Random work must not be kept: its result would be frozen. A shuffle or a repeat in front
of such work is moved behind the cache, which leaves what an epoch holds as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOVED = ("shuffle", "repeat")
_BATCHES = ("batch", "padded batch")
# What these make of shuffled elements is another thing in each epoch.
_CHOOSES = (*_BATCHES, "take", "skip", "shard")


@dataclass(frozen=True)
class CachePoint:
    """Where a cache goes.

    Attributes:
        after: The place of the stage that it follows.
        moved: Places of the stages that go from before it to behind it.
    """

    after: int
    moved: tuple[int, ...] = ()


def cache_point(stages: Sequence[dict[str, Any]]) -> CachePoint | str:
    """Find the last place that is right; a sentence's end where there is none.

    Args:
        stages: As ``Stage.as_facts`` has them, the source first.
    """
    work, moved, why = None, [], "no stage in front of the batch takes any work"
    for place, stage in enumerate(stages):
        if stage["python"]:
            why = "Python runs in front of it, and that is measured by itself"
            break
        if stage["kind"] in _MOVED:
            moved.append(place)
        elif stage["random"]:
            why = f"the {stage['kind']} in front of it is random: {_FROZEN}"
            break
        elif stage["kind"] in _CHOOSES and moved:
            break
        if stage["works"] and not stage["records"]:
            work = place
    if work is None:
        return why
    return CachePoint(work, tuple(place for place in moved if place < work))


_FROZEN = "a cache would freeze the augmentation"
