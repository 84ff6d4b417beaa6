"""The order of stages: batches before cheap maps, shuffles before expensive ones."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.pipeline.chain import chain, kind
from perfkit.diagnosis.pipeline.rebuilding import again, rebuilt
from perfkit.diagnosis.pipeline.vectorising import batch_first
from perfkit.diagnosis.swap import Swap, Untested
from perfkit.diagnosis.swaps.resident import NAME as CEILING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training

_LATE = "late-shuffle"
# Stages that give an element for each that they are given.
_ONE_TO_ONE = ("map", "prefetch", "options")
# A trial's epochs are short: of a longer buffer that holds less than all they would
# see it filled, and never emptied without new work.
_SMALL_SHARE = 0.1


def per_example(facts: Facts) -> Iterator[Swap]:
    """Maps that do the same to a batch at once, called for each batch."""
    names = facts.pipeline.get("for batches") or []
    if not names:
        return
    named = " and ".join(f"`{n}`" if n else "A function" for n in reversed(names))
    calls = "".join(f".map({name or '...'})" for name in reversed(names))
    yield Swap(
        name="batch before map",
        cause="per-example-map",
        kind="defect",
        changes=f"{named} is called for each batch instead of each example; for the "
        "first examples the result is the same.",
        fix=f".batch(...){calls} instead of {calls}.batch(...): the function then "
        "works on a whole batch",
        apply=functools.partial(map_batches, count=len(names)),
        after=CEILING,
    )


def late_shuffle(facts: Facts) -> Iterator[Swap | Untested]:
    """A shuffle in front of the maps whose results it holds."""
    stages = facts.pipeline.get("stages", [])
    place = late(stages)
    if place is None:
        return
    before = stages[place - 1]
    size, count = stages[place]["arguments"]["buffer_size"], before["elements"]
    if count is None or (_SMALL_SHARE * count < size < count):
        why = "a short epoch does not show how long its buffer takes to fill and empty"
        yield Untested(_LATE, why)
        return
    if count < 0:
        yield Untested(_LATE, "data without an end fill the buffer once")
        return
    yield Swap(
        name="shuffle before map",
        cause=_LATE,
        kind="defect",
        changes=f"The shuffle of {min(size, count)} elements is filled with what the "
        "map is given, so that each epoch begins before all of that is mapped.",
        fix=f".shuffle({size}) before .map(...), not behind it: the buffer fills at "
        "once, and holds less",
        apply=shuffle_first,
        after=CEILING,
        own_pauses=True,
    )


def late(stages: Sequence[dict[str, Any]]) -> int | None:
    """The place of the first shuffle that follows a map; None where none does."""
    for place in range(1, len(stages)):
        if stages[place]["kind"] == "shuffle":
            leading = stages[_first(stages, place) : place]
            if any(one["kind"] == "map" for one in leading):
                return place
    return None


def _first(stages: Sequence[dict[str, Any]], place: int) -> int:
    """The first place of the stages before it that give element for element."""
    first = place
    while first > 1 and stages[first - 1]["kind"] in _ONE_TO_ONE:
        first -= 1
    return first


def map_batches(training: Training, *, count: int) -> None:
    """Put the last maps in front of the batch behind it."""
    training.data = batch_first(training.data, count)


def shuffle_first(training: Training) -> None:
    """Put the first shuffle that follows maps in front of them."""
    objects = chain(training.data)
    stages = [{"kind": kind(one)} for one in objects]
    place = late(stages)
    if place is None:
        return
    first = _first(stages, place)

    def change(at: int, one: Any, before: Any) -> Any:
        if at == first:
            return again(one, again(objects[place], before))
        return before if at == place else again(one, before)

    training.data = rebuilt(training.data, change)
