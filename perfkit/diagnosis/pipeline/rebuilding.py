"""Build a pipeline anew with something else in the place of one stage.

A stage whose input has not changed is left as it is, so its function is not traced
again. What cannot be built anew with the same meaning is never a stage of a chain.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.pipeline.chain import chain
from perfkit.errors import BadParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perfkit.diagnosis.training import Training


def rebuilt(dataset: Any, change: Callable[[int, Any, Any], Any]) -> Any:
    """Build a pipeline anew, each stage being what ``change`` makes of it.

    Args:
        dataset: Its last stage.
        change: Takes a stage's place in the chain, the stage as it was and what is
            before it now (None before the source); gives what stands there.
    """
    before = None
    for place, stage in enumerate(chain(dataset)):
        before = change(place, stage, before)
    return before


def again(stage: Any, before: Any) -> Any:
    """The same stage behind something else; the source stays what it is."""
    if before is None or before is stage._input_dataset:
        return stage
    return _AGAIN[type(stage).__name__](stage, before)


def parallel(stage: Any, before: Any, calls: int) -> Any:
    """A map or an interleave behind ``before``, so many calls at a time."""
    function = stage._map_func._func
    if type(stage).__name__ == "_InterleaveDataset":
        return before.interleave(
            function,
            cycle_length=int(stage._cycle_length),
            block_length=int(stage._block_length),
            num_parallel_calls=calls,
        )
    return before.map(function, num_parallel_calls=calls)


def _map(stage: Any, before: Any) -> Any:
    synchronous = True if stage._force_synchronous else None
    return before.map(stage._map_func._func, synchronous=synchronous)


def _parallel_map(stage: Any, before: Any) -> Any:
    return before.map(
        stage._map_func._func,
        num_parallel_calls=int(stage._num_parallel_calls),
        deterministic=_in_order(stage),
        use_unbounded_threadpool=stage._use_unbounded_threadpool,
    )


def _parallel_batch(stage: Any, before: Any) -> Any:
    return before.batch(
        int(stage._batch_size),
        drop_remainder=bool(stage._drop_remainder),
        num_parallel_calls=int(stage._num_parallel_calls),
        deterministic=_in_order(stage),
    )


def _padded_batch(stage: Any, before: Any) -> Any:
    return before.padded_batch(
        int(stage._batch_size),
        padded_shapes=stage._padded_shapes,
        padding_values=stage._padding_values,
        drop_remainder=bool(stage._drop_remainder),
    )


def _shuffle(stage: Any, before: Any) -> Any:
    # 0 and 0 stand for a seed drawn anew; otherwise the first is the global one.
    drawn = not int(stage._seed) and not int(stage._seed2)
    return before.shuffle(
        int(stage._buffer_size),
        seed=None if drawn else int(stage._seed2),
        reshuffle_each_iteration=stage._reshuffle_each_iteration,
    )


def _in_order(stage: Any) -> bool | None:
    return {"true": True, "false": False}.get(stage._deterministic)


def _assert_cardinality(stage: Any, before: Any) -> Any:
    import tensorflow as tf

    count = int(stage._expected_cardinality)
    return before.apply(tf.data.experimental.assert_cardinality(count))


_AGAIN: dict[str, Callable[[Any, Any], Any]] = {
    "_AssertCardinalityDataset": _assert_cardinality,
    "_BatchDataset": lambda stage, before: before.batch(
        int(stage._batch_size), drop_remainder=bool(stage._drop_remainder)
    ),
    "_FilterDataset": lambda stage, before: before.filter(stage._predicate._func),
    "_FlatMapDataset": lambda stage, before: before.flat_map(stage._map_func._func),
    "_InterleaveDataset": lambda stage, before: before.interleave(
        stage._map_func._func,
        cycle_length=int(stage._cycle_length),
        block_length=int(stage._block_length),
    ),
    "_MapDataset": _map,
    "_OptionsDataset": lambda stage, before: before.with_options(stage.options()),
    "_PaddedBatchDataset": _padded_batch,
    "_ParallelBatchDataset": _parallel_batch,
    "_ParallelMapDataset": _parallel_map,
    "_PrefetchDataset": lambda stage, before: before.prefetch(int(stage._buffer_size)),
    "_RepeatDataset": lambda stage, before: before.repeat(int(stage._count)),
    "_ShardDataset": lambda stage, before: before.shard(
        int(stage._num_shards), int(stage._index)
    ),
    "_ShuffleDataset": _shuffle,
    "_SkipDataset": lambda stage, before: before.skip(int(stage._count)),
    "_TakeDataset": lambda stage, before: before.take(int(stage._count)),
    "CacheDataset": lambda stage, before: before.cache(_plain(stage._filename)),
}


def _plain(name: Any) -> str:
    text: bytes = name.numpy()
    return text.decode()


_MOVED = ("shuffle", "repeat")
_CACHE_POINT_BATCHES = ("batch", "padded batch")
# What these make of shuffled elements is another thing in each epoch.
_CHOOSES = (*_CACHE_POINT_BATCHES, "take", "skip", "shard")


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


_UNKNOWN, _ENDLESS = -2, -1
_UNEVEN = ("_FilterDataset", "_FlatMapDataset", "_InterleaveDataset")
_KEEPING_BATCHES = ("_BatchDataset", "_PaddedBatchDataset", "_ParallelBatchDataset")


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
        if type(stage).__name__ in _KEEPING_BATCHES:
            count *= int(stage._batch_size)
    return count


def leave_files_alone(training: Training) -> None:
    """Let caches in files lie elsewhere: half a cache would spoil the user's own."""
    if _caches_in_files(training):
        training.data = in_folder(training.data, tempfile.mkdtemp())


def fill_caches(training: Training, worth: Worth) -> None:
    """Fill the caches of a pipeline beforehand: short epochs never would."""
    if training.kind == "tf.data":
        folder = tempfile.mkdtemp() if _caches_in_files(training) else ""
        training.data = refilled(training.data, worth, folder)


def _caches_in_files(training: Training) -> bool:
    return training.kind == "tf.data" and any(map(in_file, chain(training.data)))
