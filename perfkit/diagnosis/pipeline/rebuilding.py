"""A pipeline built anew, with something else in the place of a stage, or kept there."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.pipeline.chain import again, chain, kind, stacked
from perfkit.errors import BadParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perfkit.diagnosis.training import Training


def rebuilt(dataset: Any, change: Callable[[int, Any, Any], Any]) -> Any:
    """Build a pipeline anew, each stage being what ``change`` makes of it.

    Args:
        dataset: Its last stage.
        change: Takes a stage's place in the chain, the stage as it was and what is
            before it now; gives what stands there, or None for the same. The source
            is not asked for.
    """
    source, *stages = chain(dataset)
    made = source
    for place, stage in enumerate(stages, 1):
        changed = change(place, stage, made)
        made = again(stage, made) if changed is None else changed
    return made


_MOVED = ("shuffle", "repeat")
_BATCHES = ("batch", "padded batch")
# What these make of shuffled elements is another thing in each epoch.
_CHOOSES = (*_BATCHES, "take", "skip", "shard")


@dataclass(frozen=True)
class CachePoint:
    """Where a cache goes.

    Attributes:
        after: The place of the stage that it follows.
        moved: Places of the stages that go from before it to behind it.
    """

    after: int
    moved: tuple[int, ...] = ()


def cache_point(stages: Sequence[dict[str, Any]]) -> CachePoint | str:
    """Find the last place that is right; a sentence's end where there is none.

    Args:
        stages: As ``Stage.as_facts`` has them, the source first.
    """
    work, moved, why = None, [], "no stage in front of the batch takes any work"
    for place, stage in enumerate(stages):
        if stage["python"]:
            why = "Python runs in front of it, and that is measured by itself"
            break
        if stage["kind"] in _MOVED:
            moved.append(place)
        elif stage["random"]:
            frozen = "a cache would freeze the augmentation"
            why = f"the {stage['kind']} in front of it is random: {frozen}"
            break
        elif stage["kind"] in _CHOOSES and moved:
            break
        if stage["works"] and not stage["records"]:
            work = place
    if work is None:
        return why
    return CachePoint(work, tuple(place for place in moved if place < work))


_UNKNOWN, _ENDLESS = -2, -1
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


def kept(dataset: Any, count: int, whole: int = _UNKNOWN, file: str = "") -> Any:
    """The same number of elements, of which the first ``count`` come again and again.

    Args:
        dataset: What makes them; it is run at once.
        count: How many are kept.
        whole: How many there are, if ``dataset`` itself does not know.
        file: Where they are kept; "" for memory.

    Raises:
        BadParameterError: There is no element.
    """
    memory = dataset.take(count).cache(file)
    held = sum(1 for _ in memory)
    if not held:
        raise BadParameterError("The pipeline gives no element that could be kept.")
    known = int(dataset.cardinality())
    whole = whole if known == _UNKNOWN else known
    if held < count or whole == held:
        return memory
    return memory.repeat().take(whole if whole > 0 else _ENDLESS)


def kept_after(
    dataset: Any, place: int, worth: Worth, moved: tuple[int, ...] = ()
) -> Any:
    """The pipeline with what leaves one stage kept.

    Args:
        dataset: The last stage.
        place: Of that stage in its chain.
        worth: How much is kept.
        moved: Places of stages that go from before it to behind it.
    """
    stages = chain(dataset)
    behind = stages[place + 1 :]
    before = [one for at, one in enumerate(stages[: place + 1]) if at not in moved]
    made = _kept(stacked(before), behind, worth)
    return stacked([*(stages[one] for one in moved), *behind], made)


def refilled(dataset: Any, worth: Worth, folder: str) -> Any:
    """The pipeline with each cache of its own filled as far as short epochs go.

    Args:
        dataset: The last stage.
        worth: How much is kept.
        folder: Where caches in files go: those of the user are left alone.
    """
    stages = chain(dataset)

    def change(at: int, stage: Any, before: Any) -> Any:
        if kind(stage) != "cache":
            return None
        file = f"{folder}/cache-{at}" if in_file(stage) else ""
        return _kept(before, stages[at + 1 :], worth, file)

    return rebuilt(dataset, change)


def in_folder(dataset: Any, folder: str) -> Any:
    """The pipeline with its caches in files lying in another folder."""

    def change(at: int, stage: Any, before: Any) -> Any:
        return before.cache(f"{folder}/cache-{at}") if in_file(stage) else None

    return rebuilt(dataset, change)


def in_file(stage: Any) -> bool:
    """Whether it is a cache that lies in a file."""
    return kind(stage) == "cache" and bool(stage._filename.numpy())


def _kept(dataset: Any, behind: list[Any], worth: Worth, file: str = "") -> Any:
    count = worth.steps * per_step(behind)
    return kept(dataset, count, _whole(behind, worth.epoch), file)


def _whole(behind: list[Any], epoch: int | None) -> int:
    """How many elements these stages take in an epoch; -1 for as many as there are."""
    for place, stage in enumerate(behind):
        if kind(stage) == "assert cardinality":
            return int(stage._expected_cardinality) * per_step(behind[:place])
        if kind(stage) in _UNEVEN:
            return _ENDLESS
    return epoch * per_step(behind) if epoch else _ENDLESS


def per_step(stages: list[Any]) -> int:
    """How many elements a step takes out of what is before these stages."""
    return math.prod(int(o._batch_size) for o in stages if kind(o) in _BATCHES)


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
