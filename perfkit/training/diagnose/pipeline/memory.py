"""What a pipeline keeps in memory: elements behind a stage, or the files it reads."""

import itertools
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfkit import units
from perfkit.errors import BadParameterError
from perfkit.training.diagnose.pipeline import UNKNOWN, chain, kind, rebuilt, stacked
from perfkit.training.diagnose.training import Training

_MOVED = ("shuffle", "repeat")
_BATCHES = ("batch", "padded batch")
# What these make of shuffled elements is another thing in each epoch.
_CHOOSES = (*_BATCHES, "take", "skip", "shard")


def cache_point(stages: Sequence[dict[str, Any]]) -> dict[str, Any] | str:
    """Find the last place for a cache that is right, in stages as of ``describe``.

    Returns:
        ``"after"``, the place of the stage that it follows, and ``"moved"``, those of
        the stages that go from before it to behind it; a sentence's end where no place
        is right.
    """
    work, moved, reason = None, [], "no stage in front of the batch does any work"
    for place, stage in enumerate(stages):
        if stage["python"]:
            reason = "Python runs in front of it, which is measured by itself"
            break
        if stage["kind"] in _MOVED:
            moved.append(place)
        elif stage["random"]:
            frozen = "a cache would freeze the augmentation"
            reason = f"the {stage['kind']} in front of it is random: {frozen}"
            break
        elif stage["kind"] in _CHOOSES and moved:
            break
        takes = work is not None and stage["kind"] == "take"
        if takes or (stage["works"] and not stage["records"]):
            work = place
    if work is None:
        return reason
    moved = [place for place in moved if place < work]
    behind = (*moved, *range(work + 1, len(stages)))
    kinds = (stages[place]["kind"] for place in behind)
    if "take" in itertools.takewhile("repeat".__ne__, kinds):
        return "an epoch reads only a part, so TensorFlow would throw the cache away"
    return {"after": work, "moved": moved}


_ENDLESS = -1
_UNEVEN = ("filter", "flat map", "interleave")


@dataclass(frozen=True)
class Worth:
    """How much of an epoch is kept.

    Attributes:
        steps: Whose elements are kept.
        epoch: Steps of a real epoch; None where nobody knows.
    """

    steps: int
    epoch: int | None = None


def keep_first(dataset: Any, count: int, total: int = UNKNOWN, file: str = "") -> Any:
    """Return a dataset of the same length that repeats the first ``count`` elements.

    They are made at once, and kept in a file or in memory. There are ``total`` in all
    if the cardinality is unknown.

    Raises:
        BadParameterError: There is no element.
    """
    memory = dataset.take(count).cache(file)
    length = sum(1 for _ in memory)
    if not length:
        raise BadParameterError("The pipeline yields no element to keep.")
    cardinality = int(dataset.cardinality())
    total = total if cardinality == UNKNOWN else cardinality
    return _as_many(memory, total) if length == count != total else memory


def _as_many(elements: Any, total: int) -> Any:
    """Repeat the elements until there are ``total``; -1 for no end."""
    return elements.repeat().take(total if total > 0 else _ENDLESS)


def keep_after(
    dataset: Any, place: int, worth: Worth, moved: Sequence[int] = ()
) -> Any:
    """Return the pipeline with the elements that leave one stage kept.

    The stages at the places ``moved`` go from before it to behind it.
    """
    stages = chain(dataset)
    behind = stages[place + 1 :]
    before = [stage for at, stage in enumerate(stages[: place + 1]) if at not in moved]
    source = _keep_epoch(stacked(before), behind, worth)
    return stacked([*(stages[index] for index in moved), *behind], source)


def _keep_epoch(dataset: Any, behind: list[Any], worth: Worth, file: str = "") -> Any:
    count = worth.steps * per_step(behind)
    return keep_first(dataset, count, _epoch_elements(behind, worth.epoch), file)


def _epoch_elements(behind: list[Any], epoch: int | None) -> int:
    """Return the elements that stages take in an epoch; -1 for all that there are."""
    for place, stage in enumerate(behind):
        if kind(stage) == "assert cardinality":
            return int(stage._expected_cardinality) * per_step(behind[:place])
        if kind(stage) in _UNEVEN:
            return _ENDLESS
    return epoch * per_step(behind) if epoch else _ENDLESS


def per_step(stages: list[Any]) -> int:
    """Return the elements that a step takes from what is before these stages."""
    return math.prod(int(o._batch_size) for o in stages if kind(o) in _BATCHES)


def leave_files_alone(training: Training) -> None:
    """Let caches in files lie elsewhere: half a cache would spoil the user's own."""
    _change_caches(
        training, lambda at, before, file: before.cache(file) if file else None
    )


def fill_caches(training: Training, worth: Worth) -> None:
    """Fill the caches of a pipeline beforehand: short epochs never would.

    One that no epoch may read to its end is left as it is, because TensorFlow throws
    it away after each epoch.
    """
    stages = chain(training.data)

    def filled(at: int, before: Any, file: str) -> Any:
        behind = stages[at + 1 :]
        if not _reads_all(behind):
            return before.cache(file)
        return _keep_epoch(before, behind, worth, file)

    _change_caches(training, filled)


def is_cached(stages: Sequence[Any]) -> bool:
    """Whether one of these stages is a cache that an epoch fills."""
    return any(
        kind(stage) == "cache" and _reads_all(stages[at + 1 :])
        for at, stage in enumerate(stages)
    )


def _reads_all(behind: Sequence[Any]) -> bool:
    """Whether an epoch surely reads all of a cache that these stages follow."""
    return not any(kind(stage) == "take" and int(stage._count) >= 0 for stage in behind)


def _change_caches(training: Training, change: Callable[[int, Any, str], Any]) -> None:
    """Put what ``change`` makes of it in the place of each cache of a pipeline.

    That takes the place of a cache, what is before it, and, of one that lies in a file,
    the name of another file; it gives what ``rebuilt`` takes.
    """

    def changed(at: int, stage: Any, before: Any) -> Any:
        if kind(stage) != "cache":
            return None
        in_file = bool(stage._filename.numpy())
        return change(at, before, f"{tempfile.mkdtemp()}/cache" if in_file else "")

    if training.kind == "tf.data":
        training.data = rebuilt(training.data, changed)


def from_memory(dataset: Any, place: int, worth: Worth) -> Any:
    """The pipeline with what the stage at one place reads copied into memory."""
    stages = chain(dataset)
    count = worth.steps * per_step(stages[place:])
    return stacked(stages[place:], copied(stages[place - 1], count))


def copied(dataset: Any, count: int) -> Any:
    """The first elements again and again, names of files naming copies.

    What was just written the system still has in memory.
    """
    import tensorflow as tf

    elements = list(dataset.take(count))
    flat = [tf.nest.flatten(element) for element in elements]
    folder = tempfile.mkdtemp()
    _check(flat, folder)
    columns = [
        tf.stack([_copy(part, folder) for part in parts])
        for parts in zip(*flat, strict=True)
    ]
    packed = tf.nest.pack_sequence_as(dataset.element_spec, columns)
    copies = tf.data.Dataset.from_tensor_slices(packed)
    total = int(dataset.cardinality())
    return _as_many(copies, total) if len(elements) == count != total else copies


def _check(elements: list[list[Any]], folder: str) -> None:
    names = {name for parts in elements for part in parts if (name := _file(part))}
    if not names:
        raise BadParameterError("The map reads no files of this machine.")
    size = sum(os.stat(name).st_size for name in names)
    free = shutil.disk_usage(folder).free
    if size > free / 2:
        raise BadParameterError(
            f"The files take {units.size(size)}; only {units.size(free)} is free."
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
