"""What is known of the data of a training: its stages, and what they do."""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit.machine.limits import free_bytes
from perfkit.training.diagnose.failure import try_read
from perfkit.training.diagnose.pipeline import (
    beneath,
    chain,
    describe,
    kind,
    stacked,
    stage,
)
from perfkit.training.diagnose.pipeline.memory import cache_point, is_cached
from perfkit.training.diagnose.training import Training

_LOOKED_AT = 8
# What gives an element for each that it is given.
_ONE_TO_ONE = ("map", "options", "prefetch", "shuffle", "repeat")
# Around each record: its length and two checksums.
_FRAME = 16


def element_bytes(dataset: Any) -> int:
    """Bytes of an element, from the first few; 0 where there is none."""
    import tensorflow as tf

    sizes = [
        sum(_bytes(part) for part in tf.nest.flatten(element, expand_composites=True))
        for element in dataset.take(_LOOKED_AT)
    ]
    return sum(sizes) // len(sizes) if sizes else 0


def records(source: Any) -> int | None:
    """How many records a reader of files gives, about; None where nobody can tell."""
    names = getattr(source, "_filenames", None)
    if names is None or getattr(source, "_compression_type", None):
        return None
    size = element_bytes(source)
    if type(source).__name__ == "TFRecordDatasetV2":
        size += _FRAME
    try:
        total = sum(os.stat(name.numpy()).st_size for name in names)
    except OSError:
        return None
    return total // size if size else None


def _bytes(part: Any) -> int:
    import tensorflow as tf

    if part.dtype == tf.string:
        return int(tf.reduce_sum(tf.strings.length(part)))
    return int(tf.size(part)) * int(part.dtype.size)


def pipeline_facts(training: Training) -> dict[str, Any]:
    """Describe the data of a training; a JSON object.

    Returns:
        For every kind of data ``"python"``, the ways by which Python is called for
        each element; for a PyDataset also ``"keras"``, whether its class is one of
        Keras's. For tf.data

        * ``"stages"``: see ``pipeline.stage``; the source comes first;
        * ``"cached"``, ``"reads"``, ``"prefetched"``: whether a stage keeps elements
          from epoch to epoch, reads files, or is last and makes batches ahead;
        * ``"hidden cache"``: whether a cache lies where the chain does not reach;
        * ``"cache"``: ``{"after": place, "moved": [places]}`` where one would be right;
        * ``"bytes"``: about what all elements take there; null where nobody can tell;
        * ``"why"``: why there is no place or no number; "" where there is;
        * ``"memory"``: bytes that are free;
        * ``"for batches"``: names of the functions of the maps that may follow the
          batch, the last one first;
        * ``"rewrites"``: whether TensorFlow makes serial maps parallel and adds a
          prefetch by itself;

        or ``{"missing": why}`` where TensorFlow does not tell.
    """
    if training.kind == "PyDataset":
        of_keras = type(training.data).__module__.startswith("keras.")
        return {"python": ["PyDataset"], "keras": of_keras}
    if training.kind == "generator":
        return {"python": ["generator"]}
    if training.kind != "tf.data":
        return {}
    # What is private to TensorFlow may be gone in another version.
    reason = "this TensorFlow does not show how its stages are made"
    return try_read(_of_dataset, training.data, otherwise={"missing": reason})


def _of_dataset(dataset: Any) -> dict[str, Any]:
    objects = chain(dataset)
    stages = describe(objects)
    hidden = any(kind(part) == "cache" for part in beneath(objects[0]))
    kinds = [stage["kind"] for stage in stages if stage["kind"] != "options"]
    options = dataset.options()
    rewriting = options.experimental_optimization
    # None means that TensorFlow's own rewrites are on.
    switches = (
        options.autotune.enabled,
        rewriting.apply_default_optimizations,
        rewriting.map_parallelization,
        rewriting.inject_prefetch,
    )
    facts = {
        "stages": stages,
        "cached": hidden or is_cached(objects),
        "hidden cache": hidden,
        "reads": any(stage["reads"] for stage in stages),
        "prefetched": kinds[-1:] == ["prefetch"],
        "python": sorted({way for stage in stages for way in stage["python"]}),
        "memory": free_bytes(),
        "for batches": [stage(part)["function"] for part in for_batches(objects)],
        "rewrites": False not in switches,
    }
    return facts | _cache(objects, cache_point(stages))


def _cache(objects: list[Any], point: dict[str, Any] | str) -> dict[str, Any]:
    if isinstance(point, str):
        return {"cache": None, "bytes": None, "why": point}
    leading = objects[: point["after"] + 1]
    before = stacked(o for at, o in enumerate(leading) if at not in point["moved"])
    count = int(before.cardinality())
    if count < 0 and all(kind(part) in _ONE_TO_ONE for part in leading[1:]):
        count = records(objects[0]) or -1
    if count < 0:
        reason = "the number of elements is unknown, so they may not fit"
        return {"cache": point, "bytes": None, "why": reason}
    return {"cache": point, "bytes": count * element_bytes(before), "why": ""}


# Which maps do the same to a batch at once as to each of its examples: nobody can tell
# that from a function alone. So it is tried, on the first examples and on the same made
# different from each other, because what is normalised by the largest pixel of an image
# shows only where images differ in it.

# What a function of each element commutes with.
_BETWEEN = ("shuffle", "repeat", "take", "skip", "prefetch", "options")
# What a map that may follow the batch does none of.
_ODD = ("random", "stateful", "python", "branches", "reads")
_BATCHES = 2
_EXAMPLES = 4
_CLOSE = 1e-5
_BRIGHTEST = 255


def for_batches(objects: list[Any]) -> list[Any]:
    """Of all stages the maps that may follow the batch instead, the last one first."""
    maps = []
    for part in _before_batch(objects):
        does = stage(part)
        if any(does[trait] for trait in _ODD) or not _same_for_batches(part):
            break
        maps.append(part)
    return maps


def _before_batch(objects: list[Any]) -> Iterator[Any]:
    """Go through the maps that lead to the first batch, the last one first."""
    kinds = [kind(part) for part in objects]
    if "batch" not in kinds:
        return
    for place in range(kinds.index("batch") - 1, 0, -1):
        if kinds[place] == "map":
            yield objects[place]
        elif kinds[place] not in _BETWEEN:
            return


def batch_first(dataset: Any, count: int) -> Any:
    """The pipeline with its last ``count`` maps behind the first batch."""
    objects = chain(dataset)
    moved = list(itertools.islice(_before_batch(objects), count))
    order = [part for part in objects if not any(part is m for m in moved)]
    batch = [kind(part) for part in order].index("batch") if moved else 0
    return stacked([*order[: batch + 1], *reversed(moved), *order[batch + 1 :]])


def _same_for_batches(map_stage: Any) -> bool:
    import tensorflow as tf

    source, *stages = chain(map_stage._input_dataset)
    # Without the stages that fill a buffer before they give an element.
    fast = (stage for stage in stages if kind(stage) not in ("shuffle", "prefetch"))
    straight = stacked(fast, source)
    function = map_stage._map_func._func
    try:
        elements = list(straight.take(_BATCHES * _EXAMPLES))
        examples = tf.nest.map_structure(lambda *parts: tf.stack(parts), *elements)
        varied = tf.nest.map_structure(_varied, examples)
        return len(elements) > 1 and all(
            _commutes(function, tf.data.Dataset.from_tensor_slices(columns))
            for columns in (examples, varied)
        )
    except Exception:
        # The function is the user's own: it may raise anything when given a batch.
        return False


def _varied(column: Any) -> Any:
    """Return examples of the same shapes and limits, no two of them alike."""
    import tensorflow as tf

    values = column.numpy()
    index = np.arange(len(values)).reshape(-1, *[1] * (values.ndim - 1))
    if values.dtype == np.uint8 and values.ndim > 1:
        # As pixels are.
        pixels = np.random.default_rng(0).integers(0, _BRIGHTEST, values.shape)
        values = (pixels // (index + 1)).astype(np.uint8)
    elif np.issubdtype(values.dtype, np.floating):
        values = (values * (index + 1) / len(values) + index).astype(values.dtype)
    elif np.issubdtype(values.dtype, np.integer):
        values = values // (index + 1).astype(values.dtype)
    return tf.constant(values)


def _commutes(function: Any, examples: Any) -> bool:
    import tensorflow as tf

    mapped = examples.map(function).batch(_EXAMPLES)
    batched = examples.batch(_EXAMPLES).map(function)
    if mapped.element_spec != batched.element_spec:
        return False
    batches = zip(mapped.as_numpy_iterator(), batched.as_numpy_iterator(), strict=True)
    return all(
        _alike(a, b)
        for before, after in batches
        for a, b in zip(tf.nest.flatten(before), tf.nest.flatten(after), strict=True)
    )


def _alike(a: NDArray[Any], b: NDArray[Any]) -> bool:
    if np.issubdtype(a.dtype, np.inexact):
        # A NaN hides whether the other values would have been alike.
        return bool(np.isfinite(a).all()) and np.allclose(a, b, _CLOSE, _CLOSE)
    return bool(np.array_equal(a, b))
