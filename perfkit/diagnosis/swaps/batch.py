"""More examples in a step: twice, four and eight times as many."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.own_callbacks import see_every_step
from perfkit.diagnosis.swap import Swap, Untested

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training

_CAUSE = "small-batch"
# The others are tried only where this one brings something.
_FIRST = 4
_OTHERS = (2, 8)
_BATCH = 32
# A batch of this many is no small one: what more of it spares is the way to each step.
_USUAL = 16


def swaps(facts: Facts) -> Iterator[Swap | Untested]:
    """Larger batches, as long as the data fill one."""
    if facts.loop:
        return
    most = facts.steps or max(_OTHERS)
    if most < min(_OTHERS):
        yield Untested(_CAUSE, "a batch holds all the data already")
        return
    fitting = [times for times in (_FIRST, *_OTHERS) if times <= most]
    for times in fitting:
        after = "" if times == fitting[0] else _name(fitting[0])
        yield _swap(facts, times, after)


def _swap(facts: Facts, times: int, after: str) -> Swap:
    size = f" ({facts.batch * times} examples)" if facts.batch > 1 else ""
    return Swap(
        name=_name(times),
        cause=_CAUSE,
        kind="opportunity",
        changes=f"{times} times as many examples in a batch{size}"
        f"{'; callbacks see as many batches as before' if facts.callbacks else ''}.",
        fix=f"A batch {times} times as large{size}. This changes the optimisation: "
        "tune the learning rate anew, and watch the validation loss.",
        apply=functools.partial(enlarge, times=times),
        after=after,
        batches=times,
        combines=False,
        spares="step-overhead" if facts.batch >= _USUAL else "",
    )


def _name(times: int) -> str:
    return f"batch ×{times}"


def enlarge(training: Training, *, times: int) -> None:
    """Put several batches into one; validation and callbacks keep their own."""
    from perfkit.diagnosis.facts import steps_of

    arguments = training.arguments
    see_every_step(arguments["callbacks"], steps_of(training), times)
    if arguments.get("steps_per_epoch"):
        arguments["steps_per_epoch"] = -(-int(arguments["steps_per_epoch"]) // times)
    if training.kind == "arrays":
        size = int(arguments.get("batch_size") or _BATCH)
        arguments.setdefault("validation_batch_size", size)
        arguments["batch_size"] = size * times
    elif training.kind == "tf.data":
        training.data = _merged_batches(training.data, times)
    elif training.kind == "PyDataset":
        training.data = _merged_items(training.data, times)
    else:
        training.data = _merged_generator(training.data, times)


def _merged_batches(data: Any, times: int) -> Any:
    import tensorflow as tf

    size = int(tf.shape(tf.nest.flatten(next(iter(data)))[0])[0])
    return data.rebatch(size * times)


def _merged_items(data: Any, times: int) -> Any:
    import keras

    count = data.num_batches

    class Merged(keras.utils.PyDataset):  # type: ignore[misc]
        """Items of the user's own, several at a time."""

        @property
        def num_batches(self) -> int | None:
            return None if count is None else -(-count // times)

        def __getitem__(self, index: int) -> Any:
            first = index * times
            last = first + times if count is None else min(first + times, count)
            return merged([data[i] for i in range(first, last)])

        def on_epoch_begin(self) -> None:
            data.on_epoch_begin()

        def on_epoch_end(self) -> None:
            data.on_epoch_end()

    return Merged(
        workers=data.workers,
        use_multiprocessing=data.use_multiprocessing,
        max_queue_size=data.max_queue_size,
    )


def _merged_generator(make: Callable[[], Any], times: int) -> Callable[[], Any]:
    def batches() -> Iterator[Any]:
        held: list[Any] = []
        for batch in make():
            held.append(batch)
            if len(held) == times:
                yield merged(held)
                held = []
        if held:
            yield merged(held)

    return batches


def merged(batches: Sequence[Any]) -> Any:
    """Several batches of the same structure as one."""
    import numpy as np
    import tensorflow as tf

    return tf.nest.map_structure(
        lambda *parts: np.concatenate([np.asarray(part) for part in parts]), *batches
    )
