"""What does TensorFlow really run when a pipeline is iterated, and where is the work?

TensorFlow keeps a model of every iterator that AUTOTUNE may tune: its stages after all
rewrites, what each has cost so far, and how many calls and how large a buffer AUTOTUNE
has chosen. ``plan`` reads it from a live iterator, which takes some milliseconds.
"""

from collections.abc import Iterator
from typing import Any

from perfkit.questions.shared import tf

_PLAIN = {
    "BatchV2": "batch",
    "FilterByLastComponent": "skip broken ones",
    "FlatMap": "one after another",
    "ForeverRepeat": "repeat",
    "FromTensor": "one value",
    "Generator": "Python generator",
    "InterleaveV2": "files in turns",
    "Map": "map",
    "MapAndBatch": "map and batch, fused",
    "MapAndBatchV2": "map and batch, fused",
    "MemoryCache": "cache in memory",
    "MemoryCacheImpl": "contents of the cache",
    "ParallelBatch": "batch, parallel",
    "ParallelInterleaveV4": "files in turns, parallel",
    "ParallelMapV2": "map, parallel",
    "Prefetch": "prefetch",
    "Repeat": "repeat",
    "Shuffle": "shuffle",
    "ShuffleAndRepeat": "shuffle and repeat, fused",
    "TFRecord": "read TFRecord",
    "TensorSlice": "list in memory",
    "Zip": "zip",
}


def plan(iterator: Any) -> dict[str, Any]:
    """Describe the stages of a live iterator in the order the data pass them.

    It is ``{"stages": [...], "cores": cores AUTOTUNE may use, "memory": bytes it may
    use for buffers}``, or ``{"missing": why there is no plan, in a sentence}``. Behind
    the stage that batches, batches count as elements. Nanoseconds are of a stage's own
    work over all threads; parallelism and buffer are null where it has none. It is
    tuned where AUTOTUNE chooses one of them.
    """
    if not isinstance(iterator, tf.data.Iterator):
        return {"missing": "Only a tf.data pipeline has a plan; this is plain Python."}
    read = getattr(tf.data.experimental, "get_model_proto", None)
    if read is None:
        return {"missing": f"TensorFlow {tf.version.VERSION} does not show its plan."}
    try:
        model = read(iterator)
    except (tf.errors.NotFoundError, tf.errors.UnimplementedError):
        return {"missing": "AUTOTUNE is off here, so TensorFlow keeps no plan."}
    nodes = [node for node in _in_order(model) if node.name != "Root"]
    total = sum(node.processing_time for node in nodes) or 1
    return {
        "stages": [_stage(node, total) for node in nodes],
        "cores": int(model.optimization_params.cpu_budget),
        "memory": int(model.optimization_params.ram_budget),
    }


def _in_order(model: Any) -> Iterator[Any]:
    """The nodes from the sources to the output."""

    def upstream(key: int) -> Iterator[Any]:
        node = model.nodes[key]
        for source in node.inputs:
            # Interleaved files come and go; one that has gone is named but not kept.
            if source in model.nodes:
                yield from upstream(source)
        yield node

    if model.output in model.nodes:
        yield from upstream(model.output)


def _stage(node: Any, total: int) -> dict[str, Any]:
    settings = {p.name: int(p.state_value) for p in node.parameters}
    return {
        "name": _PLAIN.get(node.name, node.name),
        "kind": node.name,
        "elements": int(node.num_elements),
        "ns_per_element": round(node.processing_time / max(1, node.num_elements)),
        "share": round(node.processing_time / total, 4),
        "parallelism": settings.get("parallelism"),
        "buffer": settings.get("buffer_size"),
        "tuned": any(parameter.tunable for parameter in node.parameters),
    }
