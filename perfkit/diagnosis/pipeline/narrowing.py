"""Slices in memory that are float64, as NumPy makes them, held as float32 instead."""

from __future__ import annotations

from typing import Any

from perfkit.diagnosis.pipeline.chain import chain
from perfkit.diagnosis.pipeline.rebuilding import again, rebuilt

_SLICES = "_TensorSliceDataset"


def narrows(dataset: Any) -> bool:
    """Whether a pipeline begins with float64, and its stages take float32 as well."""
    import tensorflow as tf

    source = chain(dataset)[0]
    if type(source).__name__ != _SLICES:
        return False
    if all(part.dtype != tf.float64 for part in tf.nest.flatten(source.element_spec)):
        return False
    try:
        return len(list(narrowed(dataset).take(1))) == 1
    except Exception:
        # A function of the user's own may name float64, and refuse anything else.
        return False


def narrowed(dataset: Any) -> Any:
    """The pipeline with what is float64 at its source cast once."""
    import tensorflow as tf

    def change(place: int, stage: Any, before: Any) -> Any:
        if before is not None or type(stage).__name__ != _SLICES:
            return again(stage, before)
        parts = [
            tf.cast(part, tf.float32) if part.dtype == tf.float64 else part
            for part in stage._tensors
        ]
        packed = tf.nest.pack_sequence_as(stage.element_spec, parts)
        return tf.data.Dataset.from_tensor_slices(packed)

    return rebuilt(dataset, change)
