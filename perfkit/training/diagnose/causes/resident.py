"""The training without its input: one real batch, resident, again and again."""

import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from perfkit.findings.diagnosis import WITHOUT_INPUT
from perfkit.training.diagnose.change import Candidates, Change, KnownCause, Untested
from perfkit.training.diagnose.code import line_of_stage
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.loop import BATCHES, OFTEN, is_own, iterator_class
from perfkit.training.diagnose.training import Training, first_batch, steps_of

_Real = Callable[[Any], Iterator[Any]]
_REAL = "_perfkit_real"
# Input that is made on the same cores always takes a part of them: no change shows that
# it is needless.
_DEFECT = 1.5
_FASTER = "Make the input faster"
# Nothing is wrong there: how they become batches is Keras's own.
_ARRAYS = (
    "The arrays are already in memory; Keras only cuts them into batches. Larger "
    "batches mean fewer cuts."
)


def resident(facts: Facts) -> Candidates:
    """The ceiling without input, for every kind of data."""
    has_batches = facts.drawn.get(BATCHES, 0.0) >= OFTEN
    if facts.counts and not has_batches:
        reason = "the loop gets numbers, and takes no batches from an iterator"
        yield Untested(reason)
        return
    in_memory = facts.data == "arrays"
    yield Change(
        name=WITHOUT_INPUT,
        kind="opportunity" if in_memory else None,
        defect_from=_DEFECT,
        changes="One real batch stays in memory, and every step trains on it.",
        fix=_ARRAYS if in_memory else f"{_FASTER}.",
        subject="Without any input it",
        apply=one_batch if facts.counts else keep_one_batch,
        ceiling=True,
    )


def keep_one_batch(training: Training) -> None:
    """Put one real batch in the place of all data; epochs stay as long."""
    import tensorflow as tf

    epoch_steps = training.arguments.get("steps_per_epoch")
    steps = -1 if epoch_steps else steps_of(training) or -1
    batch = first_batch(training)
    if training.loop:
        # The same objects, because a loop may take anything.
        training.data = functools.partial(itertools.repeat, batch)
        return
    resident = tf.data.Dataset.from_tensors(batch).repeat(steps)
    training.replace_data(resident.prefetch(1))


def one_iterator(training: Training) -> None:
    """Let a new iterator of a dataset go on where the last one stopped."""
    _iterate(lambda data, real: real(data.repeat()))


def one_batch(training: Training) -> None:
    """Give the first batch of a dataset, and of an iterator, again and again."""
    _iterate(lambda data, real: itertools.cycle([*itertools.islice(real(data), 1)]))
    first = dict[int, Any]()

    def resident(real: _Real, iterator: Any) -> Any:
        if id(iterator) not in first:
            # The iterator is kept, so that no other object gets the same id.
            first[id(iterator)] = iterator, real(iterator)
        return first[id(iterator)][1]

    _replace(iterator_class(), "__next__", resident)


def _iterate(make: Callable[[Any, _Real], Iterator[Any]]) -> None:
    """Give the user's code the iterator of ``make`` for every dataset that it iterates.

    A dataset of unknown length is left alone, because a loop over it would not end.
    """
    import tensorflow as tf

    iterators: dict[int, tuple[Any, Iterator[Any]]] = {}

    def iterate(real: _Real, data: Any) -> Iterator[Any]:
        count = int(data.cardinality())
        if count == tf.data.UNKNOWN_CARDINALITY:
            return real(data)
        if id(data) not in iterators:
            iterators[id(data)] = data, make(data, real)
        # A loop over a dataset, such as that of a validation, has to end.
        return itertools.islice(iterators[id(data)][1], count if count >= 0 else None)

    _replace(tf.data.Dataset, "__iter__", iterate)


def _replace(holder: Any, name: str, instead: Callable[..., Any]) -> None:
    """Replace a method for calls from the user's code, unless that is done already."""
    real = getattr(holder, name)
    if hasattr(real, _REAL):
        return

    @functools.wraps(real)
    def wrapper(self: Any) -> Any:
        # Calls from Keras keep the original, because it needs TensorFlow's iterators.
        is_own_call = is_own(sys._getframe(1))
        return instead(real, self) if is_own_call else real(self)

    setattr(wrapper, _REAL, real)
    setattr(holder, name, wrapper)


INPUT_BOUND = KnownCause(
    id="input-bound",
    kind="by gain",
    do=_FASTER,
    means="its input costs time in its steps",
    offer=resident,
    line=line_of_stage(),
)
