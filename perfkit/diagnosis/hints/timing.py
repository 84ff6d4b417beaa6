"""Clocks that are read before the device has finished."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.models import is_model
from perfkit.diagnosis.hints.names import called, dotted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.diagnosis.hints.code import Code, Hinted

_CLOCKS = {
    *("time.time", "time.perf_counter", "time.monotonic", "time.perf_counter_ns"),
    *("time.time_ns", "time.monotonic_ns", "perf_counter", "perf_counter_ns", "time"),
    *("monotonic", "default_timer", "timeit.default_timer"),
}
# What waits for the device, or brings what it computed to Python.
_WAITS = {
    *("numpy", "item", "sync_devices", "async_wait", "block_until_ready", "tolist"),
    *("fit", "evaluate", "predict", "train_on_batch", "test_on_batch"),
    *("predict_on_batch", "float", "int", "bool", "print", "array", "asarray", "list"),
    *("convert_to_numpy", "device_get", "save", "get_weights", "result"),
}
_WORK = ("tf.linalg.", "tf.nn.", "tf.math.", "tf.signal.")
_WORKS = {"tf.matmul", "tf.einsum", "tf.tensordot", "tf.reduce_sum", "tf.matvec"}


def hinted(code: Code) -> Iterator[Hinted]:
    """Each second reading of a clock, where nothing between waits for the work."""
    for node in code.nodes:
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(body, list):
                yield from _timed(code, body)
    if code.nodes and code.tree not in code.nodes:
        yield from _timed(code, code.tree.body)


def _timed(code: Code, body: Sequence[ast.stmt]) -> Iterator[Hinted]:
    read: dict[str, int] = {}
    for place, statement in enumerate(body):
        for end, start in _differences(statement):
            stop = read.get(end, place) if end else place
            if start in read and _unread(code, body[read.pop(start) + 1 : stop]):
                says = (
                    "On a GPU a call returns before its work is done, so this clock "
                    "may miss it; read a result, or call "
                    "tf.test.experimental.sync_devices(), before it."
                )
                yield body[stop], says
        name = _clock(statement)
        if name:
            read[name] = place


def _clock(statement: ast.stmt) -> str:
    """The name that a statement gives the time."""
    if not isinstance(statement, ast.Assign) or not _is_clock(statement.value):
        return ""
    return dotted(statement.targets[0])


def _is_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) in _CLOCKS and not node.args


def _differences(statement: ast.stmt) -> set[tuple[str, str]]:
    """The times that a statement takes from each other; "" for the time it reads."""
    taken = (
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
    )
    return {
        ("" if _is_clock(node.left) else dotted(node.left), dotted(node.right))
        for node in taken
        if _is_clock(node.left) or dotted(node.left)
    }


def _unread(code: Code, between: Sequence[ast.stmt]) -> bool:
    calls = [o for part in between for o in ast.walk(part) if isinstance(o, ast.Call)]
    # What another function does is not seen, and may wait.
    return any(_works(code, one) for one in calls) and not any(
        called(one) in _WAITS or _is_own(code, one) for one in calls
    )


def _works(code: Code, call: ast.Call) -> bool:
    whole = dotted(call.func)
    if code.traced(call.func) or whole in _WORKS or whole.startswith(_WORK):
        return True
    return isinstance(call.func, ast.Name) and is_model(code, call.func)


def _is_own(code: Code, call: ast.Call) -> bool:
    """Whether it calls a function of the same file, but for a traced one."""
    function = code.resolve(call.func)
    own = isinstance(function, ast.FunctionDef | ast.Lambda)
    return own and code.traced(call.func) is None
