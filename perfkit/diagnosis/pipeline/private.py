"""What a trial has to change in the data of any training before it runs."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from perfkit.diagnosis.pipeline.chain import chain
from perfkit.diagnosis.pipeline.keeping import in_file, in_folder, refilled

if TYPE_CHECKING:
    from perfkit.diagnosis.pipeline.keeping import Worth
    from perfkit.diagnosis.training import Training


def leave_files_alone(training: Training) -> None:
    """Let caches in files lie elsewhere: half a cache would spoil the user's own."""
    if _caches_in_files(training):
        training.data = in_folder(training.data, tempfile.mkdtemp())


def fill_caches(training: Training, worth: Worth) -> None:
    """Fill the caches of a pipeline beforehand: short epochs never would."""
    if training.kind == "tf.data":
        folder = tempfile.mkdtemp() if _caches_in_files(training) else ""
        training.data = refilled(training.data, worth, folder)


def _caches_in_files(training: Training) -> bool:
    return training.kind == "tf.data" and any(map(in_file, chain(training.data)))
