"""The training without its input: one real batch, resident, again and again."""

import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from perfkit.training.diagnose.change import Change, Untested
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.loop import (
    BATCHES,
    ITERATORS,
    OFTEN,
    OPERATIONS,
    is_own,
    iterator_class,
)
from perfkit.training.diagnose.training import Training, first_batch, steps_of

_Real = Callable[[Any], Iterator[Any]]
NAME = "without input"
_REAL = "_perfkit_real"
# Input that is made on the same cores always takes a part of them: no change shows that
# it is needless.
_DEFECT = 1.5
_FASTER = "Make the input faster"
# Nothing is wrong there: how they become batches is Keras's own.
_ARRAYS = (
    f"{_FASTER}: its arrays are in memory already, and Keras makes batches of them; "
    "larger batches are fewer."
)


def resident(facts: Facts) -> Iterator[Change | Untested]:
    """The ceiling without input, for every kind of data."""
    has_batches = facts.drawn.get(BATCHES, 0.0) >= OFTEN
    if facts.counts and not has_batches:
        reason = "the loop is given numbers, and no iterator gives it batches"
        yield Untested("input-bound", reason)
        return
    in_memory = facts.data == "arrays"
    yield Change(
        name=NAME,
        cause="input-bound",
        kind="opportunity" if in_memory else "by gain",
        defect_from=_DEFECT,
        changes="One real batch stays in memory and is trained on again and again.",
        fix=_ARRAYS if in_memory else f"{_FASTER}.",
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


NEED_FIT = (
    *("step-overhead", "xla", "precision", "small-batch", "callback", "validation"),
)
# The change of a loop whose steps stand in no function, and what to do there.
PARTS = "model as a graph"
_FUNCTION = (
    "Put what a step computes into a function with @tf.function, which the loop calls"
)
_IN_NONE = f"its steps compute in no function. {_FUNCTION}, and diagnose again"
_WHY = "it needs fit: a loop of your own decides that itself"


def loops(facts: Facts) -> Iterator[Change | Untested]:
    """``tf.function`` around what each step calls, and one iterator for all of them."""
    if functions := tuple(facts.eager_calls):
        listed = " and ".join(f"`{name.partition(':')[2]}`" for name in functions)
        yield Change(
            name="tf.function",
            cause="eager",
            kind="defect",
            changes=f"{listed} is traced once and run as a graph.",
            fix=f"@tf.function in the line above {listed}.",
            apply=functools.partial(as_graphs, functions=functions),
        )
    elif facts.computes == OPERATIONS:
        yield Untested("eager", _IN_NONE)
    elif facts.computes:
        yield Change(
            name=PARTS,
            cause="eager",
            kind="defect",
            changes="Each model and each optimizer that a step calls runs as a graph.",
            fix=f"{_FUNCTION}. It brings at least this: what was measured is the model "
            "and the optimizer as graphs, each by itself.",
            apply=parts_as_graphs,
        )
    if facts.drawn.get(ITERATORS, 0.0) >= OFTEN:
        yield Change(
            name="one iterator",
            cause="epoch-boundary",
            kind="defect",
            changes="The data are gone through by one iterator, and none is made in "
            "each step.",
            fix="batches = iter(dataset.repeat()) before the loop, and next(batches) "
            "in it instead of next(iter(dataset)).",
            apply=one_iterator,
            after=NAME,
        )


def as_graphs(training: Training, *, functions: Iterable[str]) -> None:
    """Put ``tf.function`` around the functions that ``LoopCalls.eager`` names."""
    import tensorflow as tf

    for function in functions:
        module, _, path = function.partition(":")
        *outer, name = path.split(".")
        holder = functools.reduce(getattr, outer, sys.modules[module])
        original = getattr(holder, name)
        # A trial asks for each epoch anew.
        if not isinstance(original, tf.types.experimental.PolymorphicFunction):
            setattr(holder, name, tf.function(original))


def parts_as_graphs(training: Training) -> None:
    """Put ``tf.function`` around each model and optimizer that the user's code calls.

    What a loop computes itself stands in no function, which alone could be a graph.
    """
    import keras
    import tensorflow as tf

    call, apply = keras.Layer.__call__, keras.optimizers.Optimizer.apply
    graphs = dict[tuple[int, ...], Any]()

    def graph_of(function: Callable[..., Any], *owners: Any) -> Any:
        # The owners are kept, so that no other object gets the same id.
        key = tuple(map(id, owners))
        return graphs.setdefault(key, (tf.function(function), owners))[0]

    @functools.wraps(call)
    def call_graph(layer: Any, *args: Any, **kwargs: Any) -> Any:
        # An unbuilt layer makes its variables, which has to happen outside a graph.
        eager = tf.executing_eagerly() and layer.built and is_own(sys._getframe(1))
        if not eager:
            return call(layer, *args, **kwargs)
        return graph_of(lambda *a, **n: call(layer, *a, **n), layer)(*args, **kwargs)

    @functools.wraps(apply)
    def apply_graph(optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
        variables = None if trainable_variables is None else [*trainable_variables]
        if not (tf.executing_eagerly() and optimizer.built):
            return apply(optimizer, grads, variables)
        owners = (optimizer, *(variables or ()))
        step = graph_of(lambda g: apply(optimizer, g, variables), *owners)
        return step([*grads])

    if not hasattr(call, _REAL):
        setattr(call_graph, _REAL, call)
        keras.Layer.__call__, keras.optimizers.Optimizer.apply = call_graph, apply_graph


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


def without_fit(
    candidates: Iterable[Change | Untested], facts: Facts
) -> Iterator[Change | Untested]:
    """For a loop, turn the changes that need ``fit`` into untested causes."""
    if not facts.loop:
        yield from candidates
        return
    # A change that is made before the loop runs needs no ``fit``.
    usable = [
        c
        for c in candidates
        if c.cause not in NEED_FIT or (isinstance(c, Change) and not c.in_place)
    ]
    yield from usable
    causes = {candidate.cause for candidate in usable}
    yield from (Untested(cause, _WHY) for cause in NEED_FIT if cause not in causes)
