"""Elements of a pipeline kept in memory, and given again instead of made again.

A trial's epochs are short. So only as many elements are kept as such an epoch needs,
and they are given again and again until there are as many as there were: what each
step costs is the same as with all of them kept, and a moment fills the memory.
"""

from __future__ import annotations

from typing import Any

from perfkit.diagnosis.pipeline.chain import chain
from perfkit.diagnosis.pipeline.rebuilding import again, rebuilt
from perfkit.errors import BadParameterError

_BATCHES = ("_BatchDataset", "_PaddedBatchDataset", "_ParallelBatchDataset")


def kept(dataset: Any, count: int, file: str = "") -> Any:
    """The same number of elements, of which the first ``count`` come again and again.

    Args:
        dataset: What makes them; it is run at once.
        count: How many are kept.
        file: Where they are kept; "" for memory.

    Raises:
        BadParameterError: There is no element.
    """
    memory = dataset.take(count).cache(file)
    held = sum(1 for _ in memory)
    if not held:
        raise BadParameterError("The pipeline gives no element that could be kept.")
    whole = int(dataset.cardinality())
    if held < count or whole == held:
        return memory
    return memory.repeat().take(whole) if whole > 0 else memory.repeat()


def kept_after(
    dataset: Any, place: int, steps: int, moved: tuple[int, ...] = ()
) -> Any:
    """The pipeline with what leaves one stage kept.

    Args:
        dataset: The last stage.
        place: Of that stage in its chain.
        steps: For which elements are kept.
        moved: Places of stages that go from before it to behind it.
    """
    stages = chain(dataset)
    count = steps * per_step(stages[place + 1 :])

    def change(at: int, stage: Any, before: Any) -> Any:
        if at in moved:
            return before
        made = again(stage, before)
        if at != place:
            return made
        made = kept(made, count)
        for one in moved:
            made = again(stages[one], made)
        return made

    return rebuilt(dataset, change)


def refilled(dataset: Any, steps: int, folder: str) -> Any:
    """The pipeline with each cache of its own filled for so many steps.

    Args:
        dataset: The last stage.
        steps: For which elements are kept.
        folder: Where caches in files go: those of the user are left alone.
    """
    stages = chain(dataset)

    def change(at: int, stage: Any, before: Any) -> Any:
        if type(stage).__name__ != "CacheDataset" or before is None:
            return again(stage, before)
        file = f"{folder}/cache-{at}" if in_file(stage) else ""
        return kept(before, steps * per_step(stages[at + 1 :]), file)

    return rebuilt(dataset, change)


def in_folder(dataset: Any, folder: str) -> Any:
    """The pipeline with its caches in files lying in another folder."""

    def change(at: int, stage: Any, before: Any) -> Any:
        if in_file(stage) and before is not None:
            return before.cache(f"{folder}/cache-{at}")
        return again(stage, before)

    return rebuilt(dataset, change)


def in_file(stage: Any) -> bool:
    """Whether it is a cache that lies in a file."""
    return type(stage).__name__ == "CacheDataset" and bool(stage._filename.numpy())


def per_step(stages: list[Any]) -> int:
    """How many elements a step takes out of what is before these stages."""
    count = 1
    for stage in stages:
        if type(stage).__name__ in _BATCHES:
            count *= int(stage._batch_size)
    return count
