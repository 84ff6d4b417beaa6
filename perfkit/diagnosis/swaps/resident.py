"""The training without its input: one real batch, resident, again and again."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis import loop_calls, rows
from perfkit.diagnosis.swap import Swap, Untested

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training

NAME = "without input"
# Input that is made on the same cores always takes a part of them: no swap shows that
# it is needless.
_DEFECT = 1.5


def swaps(facts: Facts) -> Iterator[Swap | Untested]:
    """The ceiling without input, for every kind of data."""
    drawn = facts.drawn.get(loop_calls.BATCHES, 0.0) >= loop_calls.OFTEN
    if facts.counts and not drawn:
        why = "the loop is given numbers, and no iterator gives it batches"
        yield Untested("input-bound", why)
        return
    yield Swap(
        name=NAME,
        cause="input-bound",
        kind="by gain",
        defect_from=_DEFECT,
        changes="One real batch stays in memory and is trained on again and again.",
        fix="Make the input faster: its slowest stage stands under what TensorFlow "
        "runs for its data.",
        apply=loop_calls.one_batch if facts.counts else keep_one_batch,
        ceiling=True,
    )


def keep_one_batch(training: Training) -> None:
    """Put one real batch in the place of all data; epochs stay as long."""
    import tensorflow as tf

    steps = _steps(training)
    batch = _batch(training)
    if training.loop:
        # The very same objects: a loop may be given anything.
        training.data = functools.partial(itertools.repeat, batch)
        return
    resident = tf.data.Dataset.from_tensors(batch).repeat(steps)
    training.replace_data(resident.prefetch(1))


def _steps(training: Training) -> int:
    from perfkit.diagnosis.facts import steps_of

    given = training.arguments.get("steps_per_epoch")
    return -1 if given else steps_of(training) or -1


def _batch(training: Training) -> Any:
    if training.kind == "tf.data":
        return next(iter(training.data))
    if training.kind == "PyDataset":
        item = training.data[0]
        # Keras takes a list for a tuple; tf.data would make one tensor of it.
        return tuple(item) if isinstance(item, list) else item
    if training.kind == "generator":
        return next(itertools.islice(training.data(), 1))
    size = training.arguments["batch_size"]
    return rows.first(training.data, size)
