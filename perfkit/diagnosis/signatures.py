"""Stops functions from being traced anew, from outside: what their caller would change.

Numbers of Python become tensors, shapes that change are left open, and a function that
is made anew from the same source and the same surroundings is made once.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def fix(retraced: Mapping[str, Mapping[str, Any]]) -> None:
    """Fix the signatures of these functions in this process, before they are made.

    Args:
        retraced: What is known of each, by name, as ``Tracing.anew`` tells it.
    """
    import tensorflow as tf

    of_function: Any = type(tf.function(lambda: None))
    numbers = {
        name: {a for a, what in known["changed"].items() if what == "value"}
        for name, known in retraced.items()
    }
    of_function.__init__ = _open_shapes(of_function.__init__, frozenset(retraced))
    of_function.__call__ = _tensors_for(of_function.__call__, numbers)
    if any(known["made_anew"] for known in retraced.values()):
        tf.function = _made_once(tf.function)


def _open_shapes(original: Callable[..., None], names: frozenset[str]) -> Any:
    @functools.wraps(original)
    def made(self: Any, *args: Any, **named: Any) -> None:
        original(self, *args, **named)
        if getattr(self, "_name", "") in names:
            self._reduce_retracing = True

    return made


def _tensors_for(original: Callable[..., Any], numbers: dict[str, set[str]]) -> Any:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **named: Any) -> Any:
        wanted = numbers.get(getattr(self, "_name", ""))
        if wanted:
            args, named = _with_tensors(self.python_function, wanted, args, named)
        return original(self, *args, **named)

    return call


def _with_tensors(
    function: Any, wanted: set[str], args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    names = list(_parameters(function))
    placed = [
        _tensor(one) if index < len(names) and names[index] in wanted else one
        for index, one in enumerate(args)
    ]
    return tuple(placed), {
        name: _tensor(one) if name in wanted else one for name, one in named.items()
    }


@functools.lru_cache(maxsize=64)
def _parameters(function: Any) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


def _tensor(value: Any) -> Any:
    import tensorflow as tf

    if isinstance(value, int | float) and not isinstance(value, bool):
        return tf.constant(value)
    return value


def _made_once(original: Callable[..., Any]) -> Callable[..., Any]:
    made: dict[Any, tuple[Any, Any]] = {}

    @functools.wraps(original)
    def function(func: Any = None, *args: Any, **named: Any) -> Any:
        if func is None:
            return functools.partial(function, **named)
        key = _key(func, named)
        if key is None or args:
            return original(func, *args, **named)
        if key not in made:
            # With the function, so that nothing else gets the numbers in its key.
            made[key] = original(func, **named), func
        return made[key][0]

    return function


def _key(func: Any, named: dict[str, Any]) -> Any:
    """What stands for a function and all that it refers to; None where unknown."""
    code = getattr(func, "__code__", None)
    cells = getattr(func, "__closure__", None) or ()
    try:
        around = tuple(id(cell.cell_contents) for cell in cells)
    except ValueError:
        return None
    bound = (id(getattr(func, "__self__", None)), repr(func.__defaults__))
    return code and (code, around, bound, repr(sorted(named.items())))
