"""What is made or called anew in each round of a loop."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.code import LOOPS, is_tf_function
from perfkit.diagnosis.hints.models import is_model
from perfkit.diagnosis.hints.names import called

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.hints.code import Code, Hinted

_TRACED = (
    "A tf.function that is made in a loop is traced anew in each round; make it once, "
    "before the loop."
)


def hinted(code: Code) -> Iterator[Hinted]:
    """Graphs that are made in a loop, and predictions that are called in one."""
    for node in code.nodes:
        loop = code.loop_of(node)
        if not loop or code.in_graph(node):
            continue
        if isinstance(node, ast.FunctionDef) and any(
            map(is_tf_function, node.decorator_list)
        ):
            if not _runs_often(code, node.name, loop):
                yield node, _TRACED
        elif isinstance(node, ast.Call) and _makes(code, node, loop):
            yield node, _TRACED
        elif isinstance(node, ast.Call) and _predicts(code, node, loop):
            says = (
                "predict sets up a loop and its callbacks at each call; model(x) is "
                "made for small inputs, or predict all at once."
            )
            yield node, says


def _makes(code: Code, call: ast.Call, loop: ast.AST) -> bool:
    """Whether a call wraps a function for one round of a loop."""
    above = next(code.names.above(call))
    if not is_tf_function(call) or called(call) == "partial":
        return False
    if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
        return not _runs_often(code, above.targets[0].id, loop)
    # Called at once; all else may be kept and called later.
    return isinstance(above, ast.Call) and above.func is call


def _runs_often(code: Code, name: str, loop: ast.AST) -> bool:
    """Whether a round of a loop has a loop of its own that calls a function."""
    inner = (
        one for one in ast.walk(loop) if isinstance(one, LOOPS) and one is not loop
    )
    return any(
        isinstance(node, ast.Name) and node.id == name
        for one in inner
        for node in ast.walk(one)
    )


def _predicts(code: Code, call: ast.Call, loop: ast.AST) -> bool:
    """Whether a model, the same in each round, predicts what a round is about."""
    function = call.func
    if called(call) != "predict" or not isinstance(function, ast.Attribute):
        return False
    if not isinstance(loop, ast.For) or not is_model(code, function.value):
        return False
    new = _names_in(loop.target) | _stored(loop)
    whose, what = _names_in(function.value), [*call.args, *call.keywords]
    about = set().union(*map(_names_in, what)) if what else set()
    trains = any(called(one) == "fit" for one in ast.walk(loop))
    return bool(about & new) and not whose & new and not trains


def _stored(loop: ast.AST) -> set[str]:
    names = (one for one in ast.walk(loop) if isinstance(one, ast.Name))
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}


def _names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
