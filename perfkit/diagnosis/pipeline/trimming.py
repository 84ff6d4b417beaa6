"""Texts that were padded before any pipeline: how far, and batches with less of it.

``pad_sequences`` pads with zeros, in front unless it is told otherwise, and gives all
texts one length. What a batch needs is its longest text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.diagnosis.pipeline.padding import boundaries_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

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


def to_longest(dataset: Any, known: dict[str, Any]) -> Any:
    """The batches, each cut to the longest of its texts."""
    import tensorflow as tf

    def cut(*batch: Any) -> Any:
        return _with_part(batch, known["part"], _cut(known["front"]))

    return dataset.map(cut, num_parallel_calls=tf.data.AUTOTUNE).prefetch(1)


def in_buckets(dataset: Any, known: dict[str, Any], size: int) -> Any:
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
        return _length(row, known["front"])

    texts = dataset.unbatch()
    # A batch of as many as it has is told in one call.
    edges = boundaries_of(texts.map(length), size)
    return to_longest(
        texts.bucket_by_sequence_length(
            length,
            bucket_boundaries=edges,
            bucket_batch_sizes=[size] * (len(edges) + 1),
            no_padding=True,
        ),
        known,
    )


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


def _length(row: Any, front: bool) -> Any:
    """The same of one row, or the longest of several, in TensorFlow."""
    import tensorflow as tf

    words = tf.reduce_any(tf.reshape(row != 0, (-1, tf.shape(row)[-1])), axis=0)
    places = tf.where(words)[:, 0]
    width = tf.shape(row, tf.int64)[-1]
    longest = width - tf.reduce_min(places) if front else tf.reduce_max(places) + 1
    return tf.cast(
        tf.cond(tf.size(places) > 0, lambda: longest, lambda: width), tf.int32
    )


def _cut(front: bool) -> Callable[[Any], Any]:
    def cut(rows: Any) -> Any:
        length = _length(rows, front)
        return rows[:, -length:] if front else rows[:, :length]

    return cut


def _with_part(batch: Any, place: int, change: Callable[[Any], Any]) -> Any:
    import tensorflow as tf

    parts = tf.nest.flatten(batch)
    parts[place] = change(parts[place])
    return tf.nest.pack_sequence_as(batch, parts)
