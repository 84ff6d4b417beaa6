"""What a loop of one's own does at each of its steps."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.code import LOOPS, within_own
from perfkit.diagnosis.hints.names import called, dotted
from perfkit.diagnosis.hints.numbers import changes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.hints.code import Code, Hinted

_STEP = "train_step"
_READS = {"numpy", "item"}


def hinted(code: Code) -> Iterator[Hinted]:
    """Steps that run eagerly, are traced anew, or are waited for one by one."""
    for node in code.nodes:
        if isinstance(node, ast.With) and _is_eager(code, node):
            says = (
                "This tape runs its operations one by one from Python at each step; "
                "put the step into a function under @tf.function."
            )
            yield node, says
        elif isinstance(node, ast.Call) and not code.guarded(node):
            yield from _in_step(code, node)
        if isinstance(node, ast.Call) and not code.in_graph(node):
            yield from _number(code, node)
            yield from _read(code, node)


def _in_step(code: Code, call: ast.Call) -> Iterator[Hinted]:
    """What a graph's step prints each time, or what no graph can do."""
    function = code.names.function_of(call)
    own = getattr(function, "name", "") == _STEP and code.names.class_of(call)
    if dotted(call.func) in ("tf.print", "tensorflow.print"):
        looped = function is not None and any(
            map(code.loop_of, code.calls_of(function))
        )
        if own or (looped and code.in_graph(call)):
            yield call, "This prints a line at each step; print every hundredth."
    if own and called(call) == "numpy" and not call.args:
        says = (
            "No tensor of a graph has .numpy(), so with this in train_step every step "
            "has to run eagerly; keep the tensor, or track a keras.metrics.Mean of it."
        )
        yield call, says


def _is_eager(code: Code, tape: ast.With) -> bool:
    """Whether a tape's step is run by a loop, with no graph around it."""
    tapes = (called(item.context_expr) == "GradientTape" for item in tape.items)
    # Keras makes a graph of the methods that it knows.
    if not any(tapes) or code.in_graph(tape) or code.names.class_of(tape):
        return False
    function = code.names.function_of(tape)
    if function is None or code.loop_of(tape):
        return bool(code.loop_of(tape)) and not _in_graph(code, tape)
    calls = code.calls_of(function)
    looped = bool(calls) and all(map(code.loop_of, calls))
    return looped and not _in_graph(code, tape)


def _in_graph(code: Code, node: ast.AST) -> bool:
    """Whether a node may run in a graph, or in a function that is handed on."""
    waiting, seen = [node], set[ast.AST]()
    while waiting:
        one = waiting.pop()
        function = code.names.function_of(one)
        if code.in_graph(one) or (function and _is_handed_on(code, function)):
            return True
        if function and function not in seen:
            seen.add(function)
            waiting += code.calls_of(function)
    return False


def _is_handed_on(code: Code, function: ast.AST) -> bool:
    """Whether a function is more than called: decorated, or given to another."""
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return True
    return code.uses_of.get(function, 0) > len(code.calls_of(function))


def _number(code: Code, call: ast.Call) -> Iterator[Hinted]:
    """A graph that is handed another number of Python at each step."""
    wrapper = code.traced(call.func)
    often = code.loop_of(call) or code.is_per_batch(call)
    if wrapper is None or not often or isinstance(call.func, ast.Call):
        return
    # What is told the types beforehand makes tensors of numbers.
    if any(one.arg == "input_signature" for one in getattr(wrapper, "keywords", [])):
        return
    given = [*call.args, *(one.value for one in call.keywords)]
    if any(changes(code, one) for one in given):
        says = (
            "A number of Python that changes makes this tf.function trace anew at each "
            "value; hand over tf.constant(...) of it."
        )
        yield call, says


def _read(code: Code, call: ast.Call) -> Iterator[Hinted]:
    """A result that is read at each step, without a condition."""
    loop = code.loop_of(call)
    if not isinstance(loop, ast.For) or code.guarded(call):
        return
    if any(isinstance(one, LOOPS) for one in ast.walk(loop) if one is not loop):
        return
    results = _results(code, loop)
    if results and results & _names_read(call):
        says = (
            "This waits for the device at each step; keep the tensor, and read it "
            "every hundredth step or after the loop."
        )
        yield call, says


def _results(code: Code, loop: ast.For) -> set[str]:
    """The names of what the steps of a loop return."""
    found: set[str] = set()
    for node in (one for part in loop.body for one in ast.walk(part)):
        value = node.value if isinstance(node, ast.Assign) else None
        if isinstance(value, ast.Call) and code.traced(value.func):
            stored = (one for one in ast.walk(node) if isinstance(one, ast.Name))
            found |= {one.id for one in stored if isinstance(one.ctx, ast.Store)}
    return found


def _names_read(call: ast.Call) -> set[str]:
    """The names whose values a call brings to Python."""
    if called(call) in _READS and isinstance(call.func, ast.Attribute):
        return {dotted(call.func.value)}
    if dotted(call.func) in ("float", "print"):
        parts = [call.args] if call.args else []
        return {one.id for part in parts for a in part for one in _plain(a)}
    return set()


def _plain(node: ast.AST) -> Iterator[ast.Name]:
    """The names in an argument that are not worked on by another call there."""
    if not any(True for _ in within_own(node)):
        yield from (one for one in ast.walk(node) if isinstance(one, ast.Name))
