"""Padding: how far each batch is padded, and batches of examples of similar length."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.diagnosis.pipeline.chain import again, kind
from perfkit.diagnosis.pipeline.rebuilding import rebuilt
from perfkit.errors import BadParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


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
    return rebuilt(
        dataset,
        lambda place, one, before: (
            again(one, before, padded_shapes=None) if kind(one) == PADS else None
        ),
    )


def in_buckets(dataset: Any) -> Any:
    """The pipeline with batches of examples of similar length.

    Raises:
        BadParameterError: All examples have one length.
    """

    def bucketed(place: int, one: Any, before: Any) -> Any:
        if kind(one) != PADS:
            return None
        length = functools.partial(_length, before.element_spec)
        return _by_length(
            before,
            length,
            int(one._batch_size),
            padding_values=one._padding_values,
            drop_remainder=bool(one._drop_remainder),
        )

    return rebuilt(dataset, bucketed)


def _by_length(data: Any, length: Callable[..., Any], size: int, **more: Any) -> Any:
    boundaries = boundaries_of(data.map(length), size)
    return data.bucket_by_sequence_length(
        length,
        bucket_boundaries=boundaries,
        bucket_batch_sizes=[size] * (len(boundaries) + 1),
        **more,
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


# Shorter rows are features, not texts; of less padding nobody would gain.
_SHORTEST, _MOSTLY_FULL = 16, 0.8
_SHUFFLED = 10_000


def padded(model: Any, batch: Any) -> dict[str, Any]:
    """Describe the padding of a batch; nothing where there is none to save.

    Args:
        model: Which may take one length only.
        batch: What ``fit`` is given for a step.

    Returns:
        ``{"part": place among the parts of a batch, "front": whether the padding
        stands in front, "longest": length of its longest text}``.
    """
    import tensorflow as tf

    given = getattr(model, "inputs", None) or ()
    if any(len(one.shape) == 2 and one.shape[1] is not None for one in given):
        return {}
    for place, part in enumerate(tf.nest.flatten(batch)):
        if getattr(part, "dtype", None) not in (tf.int32, tf.int64, "int32", "int64"):
            continue
        rows = np.asarray(part)
        if rows.ndim != 2 or rows.shape[1] < _SHORTEST:
            continue
        for front in (False, True):
            lengths = _lengths(rows, front=front)
            if lengths.mean() < _MOSTLY_FULL * rows.shape[1]:
                longest = int(lengths.max())
                return {"part": place, "front": front, "longest": longest}
    return {}


def cut_to_longest(dataset: Any, known: dict[str, Any]) -> Any:
    """The batches, each cut to the longest of its texts."""
    import tensorflow as tf

    def cut(*batch: Any) -> Any:
        parts = tf.nest.flatten(batch)
        rows = parts[known["part"]]
        length = _length_of_row(rows, known["front"])
        parts[known["part"]] = rows[:, -length:] if known["front"] else rows[:, :length]
        return tf.nest.pack_sequence_as(batch, parts)

    return dataset.map(cut, num_parallel_calls=tf.data.AUTOTUNE).prefetch(1)


def cut_in_buckets(dataset: Any, known: dict[str, Any], size: int) -> Any:
    """Batches of texts of similar length, each cut to its longest.

    Args:
        dataset: Of batches.
        known: What ``padded`` says of them.
        size: Examples of a batch.

    Raises:
        BadParameterError: All texts have one length.
    """
    import tensorflow as tf

    def length(*text: Any) -> Any:
        row = tf.nest.flatten(text)[known["part"]]
        return _length_of_row(row, known["front"])

    texts = _by_length(dataset.unbatch(), length, size, no_padding=True)
    return cut_to_longest(texts, known)


def batches(data: Any, size: int) -> Any:
    """Arrays as ``fit`` gives them: shuffled, in batches."""
    import tensorflow as tf

    examples = tf.data.Dataset.from_tensor_slices(data)
    return examples.shuffle(_SHUFFLED).batch(size)


def _lengths(rows: NDArray[np.int_], *, front: bool) -> NDArray[np.int_]:
    """The length of each row without its padding, shape (rows,)."""
    words = rows[:, ::-1] != 0 if not front else rows != 0
    skipped = np.where(words.any(axis=1), words.argmax(axis=1), rows.shape[1])
    return np.asarray(rows.shape[1] - skipped)


def _length_of_row(row: Any, front: bool) -> Any:
    """The same of one row, or the longest of several, in TensorFlow."""
    import tensorflow as tf

    words = tf.reduce_any(tf.reshape(row != 0, (-1, tf.shape(row)[-1])), axis=0)
    places = tf.where(words)[:, 0]
    width = tf.shape(row, tf.int64)[-1]
    longest = width - tf.reduce_min(places) if front else tf.reduce_max(places) + 1
    return tf.cast(
        tf.cond(tf.size(places) > 0, lambda: longest, lambda: width), tf.int32
    )
