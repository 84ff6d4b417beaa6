"""Python between two steps: its results made beforehand, and given again."""

from __future__ import annotations

import functools
import itertools
import os
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.pipeline.chain import chain, describe, stacked
from perfkit.diagnosis.pipeline.rebuilding import Worth, kept, kept_after, per_step
from perfkit.diagnosis.swap import Swap, Untested
from perfkit.diagnosis.swaps.model import reshaped
from perfkit.diagnosis.swaps.pipeline import worth_of
from perfkit.diagnosis.swaps.resident import NAME as CEILING
from perfkit.errors import BadParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training

_CAUSE = "python-input"
_FIXES = {
    "PyDataset": "super().__init__(workers={cores}) in the PyDataset, more work per "
    "call of NumPy, or a tf.data.Dataset of TensorFlow's own operations",
    "from_generator": "tf.data.Dataset.from_tensor_slices or a reader of files, and "
    ".map(..., num_parallel_calls=tf.data.AUTOTUNE), instead of from_generator",
    "generator": "A tf.data.Dataset of TensorFlow's own operations instead of the "
    "generator, or a PyDataset with workers={cores}",
    **{
        way: f"TensorFlow's own operations instead of {way}{{where}}, or .cache() "
        "behind it where its result is the same in each epoch"
        for way in ("numpy_function", "py_function")
    },
}


def python_input(facts: Facts) -> Iterator[Swap | Untested]:
    """The results of Python made beforehand; a PyDataset also with more workers."""
    ways = facts.pipeline.get("python", [])
    if not ways or facts.counts:
        return
    if reshaped(facts):
        yield Untested(_CAUSE, "the few results that are kept would end retracing, too")
        return
    if any("debug_mode" in line for line in facts.settings.get("debugging", ())):
        yield Untested(_CAUSE, "debug mode runs all maps in Python, and is measured")
        return
    where = _where(facts.pipeline.get("stages", ()))
    fixes = [_FIXES[way].format(cores=_cores(), where=where) for way in ways]
    yield Swap(
        name="without Python",
        cause=_CAUSE,
        kind="defect",
        changes=f"What Python makes ({', '.join(ways)}{where}) was made beforehand and "
        "is given again from memory; the gain is the share spent in Python.",
        fix=" and ".join(fixes),
        apply=functools.partial(made_beforehand, worth=worth_of(facts)),
        after=CEILING,
    )
    if facts.data == "PyDataset" and facts.pipeline["workers"] < _cores() > 1:
        yield Swap(
            name=f"{_cores()} workers",
            cause=_CAUSE,
            kind="defect",
            changes=f"{_cores()} threads of Python make batches instead of "
            f"{facts.pipeline['workers']}.",
            fix=f"super().__init__(workers={_cores()}) in the PyDataset",
            apply=functools.partial(more_workers, workers=_cores()),
            after=CEILING,
        )


def _where(stages: Sequence[dict[str, Any]]) -> str:
    """Which stages call Python, such as " in the map of `load`"."""
    named = [
        f"the {one['kind']} of `{one['function']}`"
        for one in stages
        if one["python"] and one["function"]
    ]
    return f" in {' and '.join(named)}" if named else ""


def made_beforehand(training: Training, *, worth: Worth) -> None:
    """Make what Python makes beforehand, and give it again and again."""
    if training.kind == "tf.data":
        training.data = _without_python(training.data, worth)
    elif training.kind == "PyDataset":
        training.data = _held(training.data, worth.steps)
    elif training.kind == "generator":
        training.data = _repeating(training.data, worth.steps)


def more_workers(training: Training, *, workers: int) -> None:
    """Let a PyDataset make so many batches at a time."""
    training.data.workers = workers


def _without_python(dataset: Any, worth: Worth) -> Any:
    import tensorflow as tf

    objects = chain(dataset)
    stages = describe(objects)
    calling = [at for at, one in enumerate(stages) if one.python]
    if not calling:
        return dataset
    first, last = calling[0], calling[-1]
    same = per_step(objects[first : last + 1]) == 1
    if not (same and any(one.works for one in stages[:first])):
        return kept_after(dataset, last, worth)
    results = kept(objects[last], worth.steps * per_step(objects[last + 1 :]))
    # What comes before Python is still made: only Python's own share goes away.
    both = tf.data.Dataset.zip((objects[first - 1], results))
    return stacked(objects[last + 1 :], both.map(lambda made, result: result))


def _held(data: Any, steps: int) -> Any:
    import keras

    length: int | None = data.num_batches
    count = min(steps, length) if length else steps
    batches = [data[at] for at in range(count)]

    class Held(keras.utils.PyDataset):  # type: ignore[misc]
        """Batches that were made beforehand."""

        @property
        def num_batches(self) -> int | None:
            return length

        def __len__(self) -> int:
            return length or 0

        def __getitem__(self, index: int) -> Any:
            return batches[index % count]

    return Held(workers=data.workers, max_queue_size=data.max_queue_size)


def _repeating(making: Any, steps: int) -> Any:
    batches = list(itertools.islice(making(), steps))
    if not batches:
        raise BadParameterError("The generator gives no batch that could be kept.")

    def again_and_again() -> Iterator[Any]:
        # One that ended before has an end that has to come again.
        return iter(batches) if len(batches) < steps else itertools.cycle(batches)

    return again_and_again


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
