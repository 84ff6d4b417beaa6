"""Epochs of a trial end early, and a ``PyDataset`` has to be told of it."""

from __future__ import annotations

import contextlib
from typing import Any


def tell_datasets() -> None:
    """Let a ``PyDataset`` end an epoch that was broken off before it begins the next.

    Keras breaks an epoch off for good where a training is stopped, and refuses to begin
    another then. What the end does belongs to the end of an epoch, as in a real one.
    """
    # Keras before 3.7 takes an epoch as it comes, and has no such method.
    with contextlib.suppress(ImportError, AttributeError):
        from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter

        begin = PyDatasetAdapter.on_epoch_begin

        def end_then_begin(adapter: Any) -> None:
            if getattr(adapter, "_within_epoch", False):
                adapter.on_epoch_end()
            begin(adapter)

        PyDatasetAdapter.on_epoch_begin = end_then_begin
