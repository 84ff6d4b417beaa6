"""Variables of the environment that a training sets for the libraries it imports.

Trials come from a process that has imported TensorFlow before any of them sets one. So
what stands plainly in the code is set before that, and what is set later is told.
"""

from __future__ import annotations

import ast
import os
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.hints.source import UNREADABLE, source_of
from perfkit.diagnosis.maker import InFile
from perfkit.diagnosis.script import Script
from perfkit.measure.launcher import read_early

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_LIBRARIES = ("tensorflow", "keras", "tf_keras")
# Read when devices are first used, which is in the trial.
_READ_LATE = "CUDA_"


def assigned(maker: Callable[[], Any]) -> dict[str, str]:
    """The variables that its code sets to plain text before it imports TensorFlow."""
    try:
        source = source_of(maker)
        body = ast.parse(source.text).body
    except UNREADABLE:
        return {}
    functions = (node for node in body if isinstance(node, ast.FunctionDef))
    inside = next((f.body for f in functions if f.name == source.function), [])
    # The rest of a notebook's cell has been run already, in the kernel.
    nodes = [*body, *inside] if isinstance(maker, InFile | Script) else inside
    return read_early(dict(_before_import(nodes)))


def _before_import(nodes: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            names = [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        if any(name.partition(".")[0] in _LIBRARIES for name in names):
            return
        match node:
            case ast.Assign(
                targets=[ast.Subscript(value=where, slice=ast.Constant(str(name)))],
                value=ast.Constant(str(value)),
            ) if ast.unparse(where) in ("os.environ", "environ"):
                yield name, value
            case ast.Expr(
                ast.Call(func=way, args=[ast.Constant(str(name)), ast.Constant(str(v))])
            ):
                called = ast.unparse(way).removeprefix("os.")
                default = called == "environ.setdefault" and name not in os.environ
                if default or called == "putenv":
                    yield name, v


def set_late(before: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the variables that have changed since, too late for the libraries.

    Args:
        before: What ``read_early(os.environ)`` was when TensorFlow had been imported.
    """
    now = read_early(os.environ)
    names = sorted({*before, *now})
    return tuple(
        name
        for name in names
        if before.get(name) != now.get(name) and not name.startswith(_READ_LATE)
    )


def in_words(late: Sequence[str]) -> str:
    """Say that variables were set too late."""
    are = "were" if len(late) > 1 else "was"
    return (
        f"{', '.join(late)} {are} set after TensorFlow had been loaded, and may have "
        "had no effect: set it before `perfkit diagnose`, or in a cell of its own "
        "before this one."
    )
