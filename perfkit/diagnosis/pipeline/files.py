"""The files that a map reads, copied to where they are held in memory."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from perfkit import units
from perfkit.diagnosis.pipeline.chain import chain
from perfkit.diagnosis.pipeline.keeping import Worth, per_step
from perfkit.diagnosis.pipeline.rebuilding import again, rebuilt
from perfkit.diagnosis.pipeline.scratch import scratch
from perfkit.errors import BadParameterError


def from_memory(dataset: Any, place: int, worth: Worth) -> Any:
    """The pipeline with the names before one stage naming copies held in memory.

    Args:
        dataset: The last stage.
        place: Of the stage that reads; what comes to it are scalars.
        worth: How much is copied.
    """
    count = worth.steps * per_step(chain(dataset)[place:])
    return rebuilt(
        dataset,
        lambda at, stage, before: again(
            stage, copied(before, count) if at == place else before
        ),
    )


def copied(dataset: Any, count: int) -> Any:
    """The first elements again and again, names of files naming copies in memory."""
    import tensorflow as tf

    elements = list(dataset.take(count))
    flat = [tf.nest.flatten(element) for element in elements]
    folder = scratch()
    _check(flat, folder)
    columns = [
        tf.stack([_copy(part, folder) for part in parts])
        for parts in zip(*flat, strict=True)
    ]
    packed = tf.nest.pack_sequence_as(dataset.element_spec, columns)
    held = tf.data.Dataset.from_tensor_slices(packed)
    whole = int(dataset.cardinality())
    if len(elements) < count or whole == len(elements):
        return held
    return held.repeat().take(whole) if whole > 0 else held.repeat()


def _check(elements: list[list[Any]], folder: str) -> None:
    names = {name for parts in elements for part in parts if (name := _file(part))}
    if not names:
        raise BadParameterError("What the map reads are no files of this machine.")
    whole = sum(os.stat(name).st_size for name in names)
    free = shutil.disk_usage(folder).free
    if whole > free / 2:
        raise BadParameterError(
            f"The files take {units.size(whole)}, and {units.size(free)} are free."
        )


def _file(part: Any) -> str:
    if part.dtype != "string":
        return ""
    name: str = part.numpy().decode(errors="surrogateescape")
    return name if os.path.isfile(name) else ""


def _copy(part: Any, folder: str) -> Any:
    """The name of the copy; what is no file's name stays what it is.

    Folders keep their names: labels are often made of them.
    """
    name = _file(part)
    if not name:
        return part
    copy = Path(folder, *Path(os.path.abspath(name)).parts[1:])
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(name, copy)
    return str(copy)
