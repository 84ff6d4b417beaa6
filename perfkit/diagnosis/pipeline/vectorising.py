"""Which maps do the same to a batch at once as to each of its examples.

Nobody can tell that from a function alone. So it is tried: on the first examples, and
on the same made different from each other, because what is normalised by the largest
pixel of an image shows only where images differ in it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.diagnosis.pipeline.chain import (
    branches,
    chain,
    functions,
    kind,
    stacked,
    stage,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

# What a function of each element commutes with.
_BETWEEN = ("shuffle", "repeat", "take", "skip", "prefetch", "options")
_BATCHES = 2
_EXAMPLES = 4
_CLOSE = 1e-5
_BRIGHTEST = 255


def for_batches(objects: list[Any]) -> list[Any]:
    """The maps in front of the batch that may follow it instead, the last one first.

    Args:
        objects: A pipeline's stages, the source first.
    """
    found = []
    for one in before_batch(objects):
        does = stage(one)
        odd = does.random or does.stateful or does.python or does.reads
        if odd or branches(functions(one)) or not _same_for_batches(one):
            break
        found.append(one)
    return found


def before_batch(objects: list[Any]) -> Iterator[Any]:
    """The maps that lead to the first batch, the last one first."""
    kinds = [kind(one) for one in objects]
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
    moved = list(itertools.islice(before_batch(objects), count))
    order = [one for one in objects if not any(one is other for other in moved)]
    batch = [kind(one) for one in order].index("batch") if moved else 0
    return stacked([*order[: batch + 1], *reversed(moved), *order[batch + 1 :]])


def _same_for_batches(one: Any) -> bool:
    import tensorflow as tf

    source, *stages = chain(one._input_dataset)
    # Without what fills a buffer before it gives anything.
    fast = (stage for stage in stages if kind(stage) not in ("shuffle", "prefetch"))
    straight = stacked(fast, source)
    function = one._map_func._func
    try:
        elements = list(straight.take(_BATCHES * _EXAMPLES))
        seen = tf.nest.map_structure(lambda *parts: tf.stack(parts), *elements)
        varied = tf.nest.map_structure(_varied, seen)
        return len(elements) > 1 and all(
            _same(function, tf.data.Dataset.from_tensor_slices(given))
            for given in (seen, varied)
        )
    except Exception:
        # The function is the user's own: it may raise anything when given a batch.
        return False


def _varied(column: Any) -> Any:
    """Examples of the same shapes and within the same limits, no two of them alike."""
    import tensorflow as tf

    values = column.numpy()
    each = np.arange(len(values)).reshape(-1, *[1] * (values.ndim - 1))
    if values.dtype == np.uint8 and values.ndim > 1:
        # As pixels are.
        drawn = np.random.default_rng(0).integers(0, _BRIGHTEST, values.shape)
        values = (drawn // (each + 1)).astype(np.uint8)
    elif np.issubdtype(values.dtype, np.floating):
        values = (values * (each + 1) / len(values) + each).astype(values.dtype)
    elif np.issubdtype(values.dtype, np.integer):
        values = values // (each + 1).astype(values.dtype)
    return tf.constant(values)


def _same(function: Any, examples: Any) -> bool:
    import tensorflow as tf

    one = examples.map(function).batch(_EXAMPLES)
    other = examples.batch(_EXAMPLES).map(function)
    tf.nest.assert_same_structure(one.element_spec, other.element_spec)
    pairs = zip(
        tf.nest.flatten(one.element_spec),
        tf.nest.flatten(other.element_spec),
        strict=True,
    )
    if not all(a.dtype == b.dtype and list(a.shape) == list(b.shape) for a, b in pairs):
        return False
    batches = zip(one.as_numpy_iterator(), other.as_numpy_iterator(), strict=True)
    return all(
        _alike(a, b)
        for before, after in batches
        for a, b in zip(tf.nest.flatten(before), tf.nest.flatten(after), strict=True)
    )


def _alike(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if np.issubdtype(one.dtype, np.inexact):
        # A NaN tells nothing of what else would have stood there.
        return bool(np.isfinite(one).all()) and np.allclose(one, other, _CLOSE, _CLOSE)
    return bool(np.array_equal(one, other))
