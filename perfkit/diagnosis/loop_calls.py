"""What the steps of a loop of the user's own call besides what they are given.

Functions that compute gradients or run a model without a ``tf.function`` around them go
back to Python for every operation. Loops that count draw their batches themselves, and
many make an iterator for each.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import CodeType, FrameType

    from perfkit.diagnosis.training import Training

    _Real = Callable[[Any], Iterator[Any]]

ITERATORS, BATCHES = "iterators", "batches"
# Of the steps, in how many something has to be called to be a part of them.
OFTEN = 0.5
_REAL = "_perfkit_real"
_OF_OTHERS = ("perfkit", "keras", "tensorflow")


class LoopCalls:
    """Hears what is called beneath the function that holds the loop, until it ends.

    Attributes:
        steps: That the loop has made by then.
    """

    def __init__(self) -> None:
        self.steps = 0
        self._over = False
        self._loop: set[CodeType] = set()
        self._eager: Counter[str] = Counter()
        self._drawn: Counter[str] = Counter()

    def begin(self) -> None:
        """Listen from now on; called from where the loop asks for its batches."""
        if not self._loop:
            import keras
            import tensorflow as tf

            _before(tf.GradientTape, "gradient", self._hear_eager)
            _before(keras.Layer, "__call__", self._hear_eager)
            data = tf.data.Dataset
            _before(data, "__iter__", lambda frame: self._hear(ITERATORS, frame))
            _before(_iterator(), "__next__", lambda frame: self._hear(BATCHES, frame))
        self._loop |= {f.f_code for f in frames_from(sys._getframe(1)) if _is_own(f)}

    def step(self) -> None:
        """Count one more step."""
        self.steps += not self._over

    def end(self) -> None:
        """Hear no more: epochs that are hurried are not what the loop does."""
        self._over = True

    def eager(self) -> tuple[str, ...]:
        """The functions that steps call and that compute eagerly: ``"module:name"``."""
        least = OFTEN * self.steps
        often = (name for name, count in self._eager.items() if count >= least)
        return tuple(name for name in often if name)

    def drawn(self) -> dict[str, float]:
        """How many iterators a step makes and how many batches it draws from any."""
        steps = max(1, self.steps)
        return {name: count / steps for name, count in self._drawn.items()}

    def _hear_eager(self, frame: FrameType) -> None:
        import tensorflow as tf

        eager = tf.executing_eagerly() and not tf.config.functions_run_eagerly()
        if eager and not self._over:
            # What the loop computes itself no function can hold.
            self._eager[_name(self._called(frame))] += 1

    def _hear(self, what: str, frame: FrameType) -> None:
        own = frame.f_code in self._loop or self._called(frame) is not None
        self._drawn[what] += own and not self._over

    def _called(self, frame: FrameType) -> FrameType | None:
        """The user's function that the loop called and that led to a frame."""
        below = None
        for one in frames_from(frame):
            if one.f_code in self._loop:
                return below
            if not one.f_code.co_name.startswith("<"):
                # A train_step of theirs may be called by Keras, in a graph of its own.
                below = one if _is_own(one) else None
        return None


def as_graphs(training: Training, *, functions: Iterable[str]) -> None:
    """Put ``tf.function`` around what ``LoopCalls.eager`` names, wherever it lies."""
    import tensorflow as tf

    for one in functions:
        module, _, path = one.partition(":")
        *outer, name = path.split(".")
        holder = functools.reduce(getattr, outer, sys.modules[module])
        given = getattr(holder, name)
        # A trial asks for each epoch anew.
        if not isinstance(given, tf.types.experimental.PolymorphicFunction):
            setattr(holder, name, tf.function(given))


def one_iterator(training: Training) -> None:
    """Let a dataset that is iterated anew go on where it was left."""
    _iterate(_going_on)


def one_batch(training: Training) -> None:
    """Give the first batch of a dataset, and of an iterator, again and again."""
    _iterate(_resident)
    first = dict[int, Any]()

    def resident(real: _Real, iterator: Any) -> Any:
        if id(iterator) not in first:
            # With the iterator, so that no other gets its number.
            first[id(iterator)] = iterator, real(iterator)
        return first[id(iterator)][1]

    _replace(_iterator(), "__next__", resident)


def _going_on(data: Any, real: _Real) -> Iterator[Any]:
    """The batches of a dataset; who asks anew gets those that follow."""
    return real(data.repeat())


def _resident(data: Any, real: _Real) -> Iterator[Any]:
    """The first batch of a dataset, again and again."""
    return itertools.cycle([*itertools.islice(real(data), 1)])


def _iterate(how: Callable[[Any, _Real], Iterator[Any]]) -> None:
    """Let every dataset that the user's code goes through be gone through like this.

    One whose length nobody knows is left alone: a loop over it would not end.
    """
    import tensorflow as tf

    known: dict[int, tuple[Any, Iterator[Any]]] = {}

    def iterate(real: _Real, data: Any) -> Iterator[Any]:
        count = int(data.cardinality())
        if count == tf.data.UNKNOWN_CARDINALITY:
            return real(data)
        if id(data) not in known:
            known[id(data)] = data, how(data, real)
        # A loop over a dataset, such as that of a validation, has to end.
        return itertools.islice(known[id(data)][1], count if count >= 0 else None)

    _replace(tf.data.Dataset, "__iter__", iterate)


def _replace(holder: Any, name: str, instead: Callable[..., Any]) -> None:
    """Call something else where the user's code calls a method; once is enough."""
    real = getattr(holder, name)
    if hasattr(real, _REAL):
        return

    @functools.wraps(real)
    def called(self: Any) -> Any:
        # Keras needs TensorFlow's own iterators.
        own = _is_own(sys._getframe(1))
        return instead(real, self) if own else real(self)

    setattr(called, _REAL, real)
    setattr(holder, name, called)


def _iterator() -> Any:
    """The class of the iterators over datasets."""
    import tensorflow as tf

    return type(iter(tf.data.Dataset.range(1)))


def _before(holder: Any, name: str, hear: Callable[[FrameType], None]) -> None:
    """Let a method tell who calls it."""
    method = getattr(holder, name)

    @functools.wraps(method)
    def heard(*args: Any, **named: Any) -> Any:
        hear(sys._getframe(1))
        return method(*args, **named)

    setattr(holder, name, heard)


def _name(function: FrameType | None) -> str:
    """A function by its module and its place in there; "" for what is made anew."""
    if function is None or "<" in function.f_code.co_qualname:
        return ""
    return f"{function.f_globals.get('__name__')}:{function.f_code.co_qualname}"


def frames_from(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and all that led to it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_own(frame: FrameType) -> bool:
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return package not in _OF_OTHERS
