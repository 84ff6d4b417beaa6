"""What a callback does after each batch."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.names import called, dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.hints.code import Code, Hinted

_HOOKS = {
    "on_train_batch_end",
    "on_train_batch_begin",
    "on_batch_end",
    "on_batch_begin",
}
# What each does there, and what to do instead.
_DEAR = {
    "print": ("prints a line, which waits for the loss", "print every hundredth"),
    "get_weights": ("copies all weights", "look at every hundredth"),
    "evaluate": ("evaluates the model", "use validation_data"),
    "predict": ("predicts, with a loop of its own", "do so once an epoch"),
    "save": ("saves the model", "save once an epoch"),
    "save_weights": ("saves the weights", "save once an epoch"),
}


def hinted(code: Code) -> Iterator[Hinted]:
    """What is dear and done at every batch, without a condition."""
    for call in code.calls:
        dear = _dear(call)
        if dear and _at_each_batch(code, call) and not code.guarded(call):
            does, instead = _DEAR[dear]
            yield call, f"After each batch this {does}; {instead}."


def _dear(call: ast.Call) -> str:
    name, on = called(call), dotted(call.func)
    if name == "print":
        return name if on == "print" else ""
    return name if name in _DEAR and "model" in on else ""


def _at_each_batch(code: Code, call: ast.Call) -> bool:
    if code.is_per_batch(call):
        one = code.names.class_of(call)
        return one is not None and any("Callback" in called(base) for base in one.bases)
    return any(
        isinstance(above, ast.keyword) and above.arg in _HOOKS
        for above in code.names.above(call)
    )
