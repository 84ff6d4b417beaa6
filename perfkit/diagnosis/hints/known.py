"""Pipelines, and which of them names stand for while code is followed."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, eq=False)
class Stage:
    """A call that makes a stage; ``"?"`` without one for what cannot be seen."""

    name: str
    call: ast.Call | None = None


Chain = tuple[Stage, ...]
# What an expression gives: a pipeline, several things at once, or neither.
Value = Chain | list["Value"] | None
Known = dict[str, "Value"]
UNSEEN = Stage("?")


def bind(target: ast.expr, value: Value, known: Known) -> None:
    """Give names their values, a tuple of names one each."""
    if isinstance(target, ast.Name):
        known[target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        values: Iterable[Value] = value if isinstance(value, list) else ()
        padded = [*values, *[None] * len(target.elts)]
        for one, its in zip(target.elts, padded, strict=False):
            bind(one, its, known)


def either(one: Known, other: Known) -> Known:
    """What is known after either of two ways."""
    return {name: common(one.get(name), other.get(name)) for name in one | other}


def one_of(one: Value, other: Value) -> Value:
    """What is sure of two values where either may be returned."""
    return common(one, other) if one and other else one or other


def common(one: Value, other: Value) -> Value:
    """The stages that two pipelines share, and then what cannot be seen."""
    if one == other:
        return one
    if not isinstance(one, tuple) or not isinstance(other, tuple):
        return None
    same = 0
    while one[same : same + 1] == other[same : same + 1] != ():
        same += 1
    return (*one[:same], UNSEEN)
