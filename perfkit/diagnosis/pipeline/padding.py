"""Padding: how far each batch is padded, and batches of examples of similar length."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.diagnosis.pipeline.chain import kind
from perfkit.diagnosis.pipeline.rebuilding import again, rebuilt
from perfkit.errors import BadParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

PADS = "padded batch"
# So many batches tell where lengths are parted, into so many buckets.
_SEEN, _BUCKETS = 8, 4


def too_far(objects: list[Any]) -> bool:
    """Whether a stage pads to a length that its elements leave open.

    Args:
        objects: A pipeline's stages, the source first.
    """
    return any(
        asked is not None and needed is None
        for one in objects
        if kind(one) == PADS
        for asked, needed in zip(
            _sides(one.element_spec, 1),
            _sides(one._input_dataset.element_spec),
            strict=False,
        )
    )


def to_longest(dataset: Any) -> Any:
    """The pipeline with each batch padded to the longest of its examples."""
    return _changed(dataset, _to_longest)


def in_buckets(dataset: Any) -> Any:
    """The pipeline with batches of examples of similar length.

    Raises:
        BadParameterError: All examples have one length.
    """
    return _changed(dataset, _bucketed)


def _changed(dataset: Any, change: Callable[[Any, Any], Any]) -> Any:
    return rebuilt(
        dataset,
        lambda place, one, before: (
            change(one, before)
            if before is not None and kind(one) == PADS
            else again(one, before)
        ),
    )


def _to_longest(one: Any, before: Any) -> Any:
    return before.padded_batch(
        int(one._batch_size),
        padding_values=one._padding_values,
        drop_remainder=bool(one._drop_remainder),
    )


def _bucketed(one: Any, before: Any) -> Any:
    size = int(one._batch_size)
    length = functools.partial(_length, before.element_spec)
    boundaries = boundaries_of(before.map(length), size)
    return before.bucket_by_sequence_length(
        length,
        bucket_boundaries=boundaries,
        bucket_batch_sizes=[size] * (len(boundaries) + 1),
        padding_values=one._padding_values,
        drop_remainder=bool(one._drop_remainder),
    )


def boundaries_of(every: Any, size: int) -> list[int]:
    """Where the lengths of examples are parted into buckets.

    Args:
        every: A dataset of lengths.
        size: Examples of a batch.

    Raises:
        BadParameterError: All examples have one length.
    """
    lengths = [int(n) for n in every.take(_SEEN * size)]
    parted = np.unique(np.quantile(lengths, np.arange(1, _BUCKETS) / _BUCKETS))
    boundaries = sorted({int(edge) + 1 for edge in parted if edge < max(lengths)})
    if not boundaries:
        raise BadParameterError("All examples have one length: there is no padding.")
    return boundaries


def _length(spec: Any, *element: Any) -> Any:
    """The largest of an element's sizes that its kind leaves open."""
    import tensorflow as tf

    parts = zip(tf.nest.flatten(element), tf.nest.flatten(spec), strict=True)
    sizes = [
        tf.shape(part)[axis]
        for part, known in parts
        for axis, side in enumerate(known.shape)
        if side is None
    ]
    return tf.reduce_max(tf.stack(sizes)) if sizes else tf.constant(0)


def _sides(spec: Any, begin: int = 0) -> list[int | None]:
    """The sizes of all parts of an element, from one axis on; None where open."""
    import tensorflow as tf

    shapes = [part.shape for part in tf.nest.flatten(spec)]
    return [side for shape in shapes if shape.rank for side in list(shape)[begin:]]
