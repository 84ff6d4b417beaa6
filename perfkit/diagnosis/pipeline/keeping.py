"""Elements of a pipeline kept in memory, and given again instead of made again.

A trial's epochs are short. So only as many elements are kept as such an epoch needs,
and they are given again and again until there are as many as there were: what each
step costs is the same as with all of them kept, and a moment fills the memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perfkit.diagnosis.pipeline.chain import chain
from perfkit.diagnosis.pipeline.rebuilding import again, rebuilt
from perfkit.errors import BadParameterError

_UNKNOWN, _ENDLESS = -2, -1
_UNEVEN = ("_FilterDataset", "_FlatMapDataset", "_InterleaveDataset")
_BATCHES = ("_BatchDataset", "_PaddedBatchDataset", "_ParallelBatchDataset")


@dataclass(frozen=True)
class Worth:
    """How much of an epoch is kept.

    Attributes:
        steps: Whose elements are kept.
        epoch: Steps of a real epoch; None where nobody knows.
    """

    steps: int
    epoch: int | None = None


def kept(dataset: Any, count: int, whole: int = _UNKNOWN, file: str = "") -> Any:
    """The same number of elements, of which the first ``count`` come again and again.

    Args:
        dataset: What makes them; it is run at once.
        count: How many are kept.
        whole: How many there are, if ``dataset`` itself does not know.
        file: Where they are kept; "" for memory.

    Raises:
        BadParameterError: There is no element.
    """
    memory = dataset.take(count).cache(file)
    held = sum(1 for _ in memory)
    if not held:
        raise BadParameterError("The pipeline gives no element that could be kept.")
    known = int(dataset.cardinality())
    whole = whole if known == _UNKNOWN else known
    if held < count or whole == held:
        return memory
    return memory.repeat().take(whole if whole > 0 else _ENDLESS)


def kept_after(
    dataset: Any, place: int, worth: Worth, moved: tuple[int, ...] = ()
) -> Any:
    """The pipeline with what leaves one stage kept.

    Args:
        dataset: The last stage.
        place: Of that stage in its chain.
        worth: How much is kept.
        moved: Places of stages that go from before it to behind it.
    """
    stages = chain(dataset)

    def change(at: int, stage: Any, before: Any) -> Any:
        if at in moved:
            return before
        made = again(stage, before)
        if at != place:
            return made
        made = _kept(made, stages[place + 1 :], worth)
        for one in moved:
            made = again(stages[one], made)
        return made

    return rebuilt(dataset, change)


def refilled(dataset: Any, worth: Worth, folder: str) -> Any:
    """The pipeline with each cache of its own filled as far as short epochs go.

    Args:
        dataset: The last stage.
        worth: How much is kept.
        folder: Where caches in files go: those of the user are left alone.
    """
    stages = chain(dataset)

    def change(at: int, stage: Any, before: Any) -> Any:
        if type(stage).__name__ != "CacheDataset" or before is None:
            return again(stage, before)
        file = f"{folder}/cache-{at}" if in_file(stage) else ""
        return _kept(before, stages[at + 1 :], worth, file)

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


def _kept(dataset: Any, behind: list[Any], worth: Worth, file: str = "") -> Any:
    count = worth.steps * per_step(behind)
    return kept(dataset, count, _whole(behind, worth.epoch), file)


def _whole(behind: list[Any], epoch: int | None) -> int:
    """How many elements these stages take in an epoch; -1 for as many as there are."""
    for place, stage in enumerate(behind):
        if type(stage).__name__ == "_AssertCardinalityDataset":
            return int(stage._expected_cardinality) * per_step(behind[:place])
        if type(stage).__name__ in _UNEVEN:
            return _ENDLESS
    return epoch * per_step(behind) if epoch else _ENDLESS


def per_step(stages: list[Any]) -> int:
    """How many elements a step takes out of what is before these stages."""
    count = 1
    for stage in stages:
        if type(stage).__name__ in _BATCHES:
            count *= int(stage._batch_size)
    return count
