"""The stages of a pipeline as TensorFlow's own objects, from the source to the last.

TensorFlow keeps what each stage was made of: the stage before it, its function and its
arguments. None of that is public. What is not known here ends the chain: that stage
and all before it count as the source, which nobody takes apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of the stages with one stage before them that can be built anew: TensorFlow's name for
# the class, and ours for the kind.
KINDS = {
    "_AssertCardinalityDataset": "assert cardinality",
    "_BatchDataset": "batch",
    "_FilterDataset": "filter",
    "_FlatMapDataset": "flat map",
    "_InterleaveDataset": "interleave",
    "_MapDataset": "map",
    "_OptionsDataset": "options",
    "_PaddedBatchDataset": "padded batch",
    "_ParallelBatchDataset": "batch",
    "_ParallelMapDataset": "map",
    "_PrefetchDataset": "prefetch",
    "_RepeatDataset": "repeat",
    "_ShardDataset": "shard",
    "_ShuffleDataset": "shuffle",
    "_SkipDataset": "skip",
    "_TakeDataset": "take",
    "CacheDataset": "cache",
}
_SOURCES = {
    "FixedLengthRecordDatasetV2": "records of fixed length",
    "TFRecordDatasetV2": "TFRecord files",
    "TextLineDatasetV2": "lines of text files",
    "_ConcatenateDataset": "concatenate",
    "_DirectedInterleaveDataset": "sample from datasets",
    "_ParallelInterleaveDataset": "interleave",
    "_RangeDataset": "range",
    "_TensorDataset": "one value",
    "_TensorSliceDataset": "slices in memory",
    "_ZipDataset": "zip",
}


def chain(dataset: Any) -> list[Any]:
    """The stages that can be built anew, behind the source that they start from."""
    stages = [dataset]
    while _opens(stages[-1]):
        stages.append(stages[-1]._input_dataset)
    return stages[::-1]


def kind(stage: Any) -> str:
    """Name the kind of a stage; TensorFlow's name where there is no plainer one."""
    if _generates(stage):
        return "Python generator"
    name = type(stage).__name__
    return KINDS.get(name) or _SOURCES.get(name) or name.strip("_")


def functions(stage: Any) -> list[Any]:
    """The functions that a stage calls, as traced by TensorFlow."""
    return [wrapper.function for wrapper in stage._functions()]


def beneath(stage: Any) -> Iterator[Any]:
    """A stage and all that feed it, whatever their kind."""
    yield stage
    inner = getattr(stage, "_impl", None)
    for before in (*stage._inputs(), *([inner] if inner is not None else ())):
        yield from beneath(before)


def _opens(stage: Any) -> bool:
    known = type(stage).__name__ in KINDS and hasattr(stage, "_input_dataset")
    # A map that takes a private path through TensorFlow is left as it is.
    return known and not _generates(stage)


def _generates(stage: Any) -> bool:
    """Whether it is what ``from_generator`` makes."""
    return type(stage).__name__ == "_FlatMapDataset" and any(
        operation.type == "GeneratorDataset"
        for function in functions(stage)
        for operation in function.graph.get_operations()
    )
