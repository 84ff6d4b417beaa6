"""Build a pipeline anew with something else in the place of one stage.

A stage whose input has not changed is left as it is, so its function is not traced
again. What cannot be built anew with the same meaning is never a stage of a chain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.pipeline.chain import chain

if TYPE_CHECKING:
    from collections.abc import Callable


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
