"""The files that a map reads, copied to where they are held in memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from perfkit import units
from perfkit.diagnosis.pipeline.chain import chain, stacked
from perfkit.diagnosis.pipeline.rebuilding import Worth, per_step
from perfkit.errors import BadParameterError
from perfkit.measure.worker import MARK

# Files here are held in memory.
_IN_MEMORY = Path("/dev/shm")
# What is open as long as this process lives; its end is what the shells wait for.
_waiting: list[subprocess.Popen[bytes]] = []


def scratch() -> str:
    """Make a folder that is removed once this process has ended.

    Its files lie in memory where the system offers that. There nobody tidies up, and a
    trial is ended by a signal that it cannot hear: a shell waits for the end of its
    standard input and removes the folder then.
    """
    if not _IN_MEMORY.is_dir():
        return tempfile.mkdtemp()
    folder = tempfile.mkdtemp(prefix="perfkit-", dir=_IN_MEMORY)
    _waiting.append(
        subprocess.Popen(
            ["sh", "-c", 'cat >/dev/null; rm -rf "$0"', folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            # What bears the mark of a trial is ended with it.
            env={k: v for k, v in os.environ.items() if k != MARK},
        )
    )
    return folder


def from_memory(dataset: Any, place: int, worth: Worth) -> Any:
    """The pipeline with the names before one stage naming copies held in memory.

    Args:
        dataset: The last stage.
        place: Of the stage that reads; what comes to it are scalars.
        worth: How much is copied.
    """
    stages = chain(dataset)
    count = worth.steps * per_step(stages[place:])
    return stacked(stages[place:], copied(stages[place - 1], count))


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
