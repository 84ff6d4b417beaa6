"""The training without its input: one real batch, resident, again and again."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis import loop_calls, rows
from perfkit.diagnosis.swap import Swap, Untested

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training


NAME = "without input"
# Input that is made on the same cores always takes a part of them: no swap shows that
# it is needless.
_DEFECT = 1.5


def resident(facts: Facts) -> Iterator[Swap | Untested]:
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

    from perfkit.diagnosis.facts import steps_of

    given = training.arguments.get("steps_per_epoch")
    steps = -1 if given else steps_of(training) or -1
    batch = _batch(training)
    if training.loop:
        # The very same objects: a loop may be given anything.
        training.data = functools.partial(itertools.repeat, batch)
        return
    resident = tf.data.Dataset.from_tensors(batch).repeat(steps)
    training.replace_data(resident.prefetch(1))


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
    return rows.as_batches(rows.first(training.data, size))


NEED_FIT = (
    *("step-overhead", "xla", "precision", "small-batch", "callback", "validation"),
)
_WHY = "it needs fit: a loop of your own decides that itself"


def loops(facts: Facts) -> Iterator[Swap]:
    """``tf.function`` around what each step calls, and one iterator for all of them."""
    if functions := tuple(facts.eager_calls):
        listed = " and ".join(f"`{name.partition(':')[2]}`" for name in functions)
        yield Swap(
            name="tf.function",
            cause="eager",
            kind="defect",
            changes=f"{listed} is traced once and run as a graph.",
            fix=f"@tf.function in the line above {listed}. What it does besides "
            "computing, such as counting in Python, then happens only once.",
            apply=functools.partial(loop_calls.as_graphs, functions=functions),
        )
    if facts.drawn.get(loop_calls.ITERATORS, 0.0) >= loop_calls.OFTEN:
        yield Swap(
            name="one iterator",
            cause="epoch-boundary",
            kind="defect",
            changes="The data are gone through by one iterator, and none is made in "
            "each step.",
            fix="batches = iter(dataset.repeat()) before the loop, and next(batches) "
            "in it instead of next(iter(dataset)).",
            apply=loop_calls.one_iterator,
            after=NAME,
        )


def without_fit(
    found: Iterable[Swap | Untested], facts: Facts
) -> Iterator[Swap | Untested]:
    """Leave out of a loop what needs ``fit``, and say so."""
    if not facts.loop:
        yield from found
        return
    # What sets something before the loop runs needs no ``fit``.
    kept = [
        one
        for one in found
        if one.cause not in NEED_FIT or (isinstance(one, Swap) and not one.in_place)
    ]
    yield from kept
    known = {one.cause for one in kept}
    yield from (Untested(cause, _WHY) for cause in NEED_FIT if cause not in known)
