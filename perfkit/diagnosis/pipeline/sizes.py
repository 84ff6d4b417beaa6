"""How much memory the elements of a pipeline would take, all of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_LOOKED_AT = 8
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
    each = element_bytes(source)
    if type(source).__name__ == "TFRecordDatasetV2":
        each += _FRAME
    try:
        whole = sum(os.stat(name).st_size for name in _names(names))
    except OSError:
        return None
    return whole // each if each else None


def _names(dataset: Any) -> Iterable[bytes]:
    return (name.numpy() for name in dataset)


def _bytes(part: Any) -> int:
    import tensorflow as tf

    if part.dtype == tf.string:
        return int(tf.reduce_sum(tf.strings.length(part)))
    return int(tf.size(part)) * int(part.dtype.size)
