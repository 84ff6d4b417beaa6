"""What stands in the code of a training and is often a mistake; nothing is measured.

The code is read, never run. What cannot be read tells nothing.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.maker import InFile
from perfkit.findings.diagnosis import Hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PYTHON_INSIDE = {"py_function", "numpy_function"}
_LOOPS = (ast.For, ast.While, ast.AsyncFor)


def hints(maker: Callable[[], Any]) -> tuple[Hint, ...]:
    """Read the file, or the function's own source, that makes a training."""
    try:
        source = (
            Path(maker.path).read_text()
            if isinstance(maker, InFile)
            else textwrap.dedent(inspect.getsource(maker))
        )
        return hints_in(source)
    except (OSError, TypeError, SyntaxError, ValueError):
        return ()


def hints_in(source: str) -> tuple[Hint, ...]:
    """Read source code.

    Raises:
        SyntaxError: It is no Python.
    """
    tree, lines = ast.parse(source), source.splitlines()
    found = sorted({*_in_calls(tree), *_in_loops(tree), *_in_order(tree)})
    return tuple(
        Hint(line=line, code=lines[line - 1].strip(), says=says) for line, says in found
    )


def _in_calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for call in _calls(tree):
        yield from ((call.lineno, says) for says in _options(call))
        stages = _stages(call)
        yield from ((call.lineno, says) for says in _stage_order(stages))
        if _name(call) in _PYTHON_INSIDE:
            yield (
                call.lineno,
                f"{_name(call)} runs Python for each element, one at a time.",
            )


def _options(call: ast.Call) -> Iterator[str]:
    given = {k.arg: getattr(k.value, "value", None) for k in call.keywords}
    if given.get("run_eagerly") is True:
        yield "run_eagerly=True is for finding mistakes; each step runs uncompiled."
    if _name(call) == "TensorBoard" and given.get("histogram_freq"):
        yield "histogram_freq writes every weight's histogram in each such epoch."
    if _name(call) == "map" and given.get("num_parallel_calls") == 1:
        yield "num_parallel_calls=1 works on one element at a time; AUTOTUNE does not."


def _stage_order(stages: list[str]) -> Iterator[str]:
    """What is often wrong in a chain of stages; the last is the call itself."""
    *before, last = stages or [""]
    if last == "shuffle" and "batch" in before:
        yield "After batch, shuffle mixes whole batches, not examples."
    if last in ("map", "filter", "shuffle", "batch") and "prefetch" in before:
        yield f"prefetch stands before {last}, so nothing makes ready what comes last."


def _stages(call: ast.Call) -> list[str]:
    """The names of a chain of method calls, the first first."""
    names: list[str] = []
    node: ast.AST = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        names.append(node.func.attr)
        node = node.func.value
    return names[::-1]


def _in_loops(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for loop in (node for node in ast.walk(tree) if isinstance(node, _LOOPS)):
        for part in loop.body:
            for node in ast.walk(part):
                if isinstance(node, ast.Call):
                    yield from ((node.lineno, says) for says in _called_often(node))
                if isinstance(node, ast.FunctionDef) and _is_traced(node):
                    yield (
                        node.lineno,
                        "A tf.function made in a loop is traced anew each time.",
                    )


def _called_often(call: ast.Call) -> Iterator[str]:
    if _name(call) == "predict" and isinstance(call.func, ast.Attribute):
        yield "predict sets up a loop at each call; model(x) does not."


def _is_traced(function: ast.FunctionDef) -> bool:
    decorators = (
        one.func if isinstance(one, ast.Call) else one
        for one in function.decorator_list
    )
    return any(ast.unparse(one) in ("tf.function", "function") for one in decorators)


def _in_order(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Environment variables that TensorFlow reads once, set after it was imported."""
    imported = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and _imports_tensorflow(node)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and imported:
            target = ast.unparse(node.targets[0])
            late = node.lineno > min(imported)
            if late and target.startswith(("os.environ['TF_", "environ['TF_")):
                yield node.lineno, "TensorFlow has read this variable when imported."


def _imports_tensorflow(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] in ("tensorflow", "keras")
    return any(a.name.split(".")[0] in ("tensorflow", "keras") for a in node.names)


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
