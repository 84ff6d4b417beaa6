"""Which expressions are numbers of Python that change from step to step."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.names import Function, called, dotted, parameters

if TYPE_CHECKING:
    from perfkit.diagnosis.hints.code import Code

_DEEPEST = 6
_COUNTS = {"range", "count", "itertools.count"}
_PURE = {"float", "int", "round", "min", "max", "abs", "pow"}
_HOOKS = ("on_train_batch_", "on_batch_")
Given = dict[ast.arg, ast.expr]


def changes(
    code: Code, node: ast.AST | None, given: Given | None = None, deep: int = 0
) -> bool:
    """Whether an expression is certain to be such a number."""
    given, deeper = given or {}, deep + 1
    if deep > _DEEPEST:
        return False
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        moving = [changes(code, one, given, deeper) for one in sides]
        fixed = [code.number(one) is not None for one in sides]
        return any(moving) and all(m or f for m, f in zip(moving, fixed, strict=True))
    if isinstance(node, ast.Attribute):
        return _counted(code, node)
    if isinstance(node, ast.Name):
        return _name(code, node, given, deeper)
    if isinstance(node, ast.Call):
        return _call(code, node, given, deeper)
    return False


def _name(code: Code, name: ast.Name, given: Given, deep: int) -> bool:
    bound = code.names.lookup(name)
    if len(bound) == 1 and isinstance(bound[0], ast.arg):
        if bound[0] in given:
            return changes(code, given[bound[0]], {}, deep)
        return _is_batch(code, bound[0])
    if len(bound) == 1 and isinstance(bound[0], ast.For):
        return _is_count(bound[0], name.id)
    added = [one for one in bound if isinstance(one, ast.AugAssign)]
    others = [one for one in bound if one not in added]
    steps = [*others, *(one.value for one in added)]
    return bool(added) and all(code.number(one) is not None for one in steps)


def _is_count(loop: ast.For, name: str) -> bool:
    """Whether a loop's name counts its rounds."""
    target = loop.target
    if called(loop.iter) == "enumerate" and isinstance(target, ast.Tuple):
        return dotted(target.elts[0]) == name
    counts = dotted(getattr(loop.iter, "func", loop.iter)) in _COUNTS
    return counts and dotted(target) == name


def _is_batch(code: Code, parameter: ast.arg) -> bool:
    """Whether it is the number that Keras gives a callback at each batch."""
    function = code.names.function_of(parameter)
    name = getattr(function, "name", "")
    if not name.startswith(_HOOKS) or not isinstance(function, Function):
        return False
    return parameter in parameters(function)[1:2]


def _counted(code: Code, node: ast.Attribute) -> bool:
    """Whether an attribute of self starts at a number and is only added to."""
    one = code.names.class_of(node)
    if dotted(node.value) != "self" or one is None:
        return False
    whole = dotted(node)
    added, start = False, True
    for part in ast.walk(one):
        if isinstance(part, ast.AugAssign) and dotted(part.target) == whole:
            added = code.number(part.value) is not None
        elif isinstance(part, ast.Assign) and whole in map(dotted, part.targets):
            start = start and code.number(part.value) is not None
    return added and start


def _call(code: Code, call: ast.Call, given: Given, deep: int) -> bool:
    if isinstance(call.func, ast.Name) and call.func.id in _PURE:
        return any(changes(code, one, given, deep) for one in call.args)
    function = code.resolve(call.func)
    if not isinstance(function, Function) or call.keywords:
        return False
    inside = dict(zip(parameters(function), call.args, strict=False))
    body: ast.AST | None = function.body if isinstance(function, ast.Lambda) else None
    if not isinstance(function, ast.Lambda):
        last = function.body[-1]
        body = last.value if isinstance(last, ast.Return) else None
    return changes(code, body, inside, deep)
