"""What the names in source code are bound to, scope by scope."""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perfkit.diagnosis.hints.code import Code


Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_REBINDS = (ast.AugAssign, ast.For, ast.AsyncFor, ast.comprehension)
_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Names:
    """The scopes of a tree, and what binds each name in them.

    A name is bound by an expression, a definition, a parameter (``ast.arg``), or by a
    statement that hides its value, such as a loop.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._parents = {
            child: node
            for node in ast.walk(tree)
            for child in ast.iter_child_nodes(node)
        }
        self._bound: dict[ast.AST, dict[str, list[ast.AST]]] = {}

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, from the inside out."""
        while node in self._parents:
            node = self._parents[node]
            yield node

    def function_of(self, node: ast.AST) -> ast.AST | None:
        """The function that a node stands in; None outside of all."""
        return next((one for one in self.above(node) if is_function(one)), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The class that a node stands in."""
        return next(
            (one for one in self.above(node) if isinstance(one, ast.ClassDef)), None
        )

    def lookup(self, name: ast.Name) -> list[ast.AST]:
        """All that binds a name in the innermost scope that knows it."""
        for scope in self.above(name):
            if isinstance(scope, _SCOPES) and name.id in self.bound(scope):
                return self.bound(scope)[name.id]
        return []

    def bound(self, scope: ast.AST) -> dict[str, list[ast.AST]]:
        """Every name that a scope binds, with what binds it."""
        if scope not in self._bound:
            found: dict[str, list[ast.AST]] = defaultdict(list)
            for name, node in _bindings(scope):
                found[name].append(node)
            self._bound[scope] = dict(found)
        return self._bound[scope]


def is_function(node: ast.AST) -> bool:
    """Whether a node is a function, with or without a name."""
    return isinstance(node, Function)


def dotted(node: ast.AST) -> str:
    """``"tf.data.Dataset"`` for a name or its attributes; "" for all else."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return ".".join([node.id, *words[::-1]]) if isinstance(node, ast.Name) else ""


def called(node: ast.AST) -> str:
    """The last word of what is called: ``"map"`` for ``data.map(f)``."""
    function = node.func if isinstance(node, ast.Call) else node
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def keyword(call: ast.Call, name: str, position: int = -1) -> ast.expr | None:
    """What a call gives for an argument; None where it gives nothing."""
    found = (one.value for one in call.keywords if one.arg == name)
    given = call.args[position : position + 1] if position >= 0 else []
    return next(found, given[0] if given else None)


def parameters(function: Function) -> list[ast.arg]:
    """The named parameters, in their order."""
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def own(scope: ast.AST) -> Iterator[ast.AST]:
    """What stands in a scope itself, not in the functions and classes inside it."""
    waiting = deque(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.popleft()
        yield node
        if not isinstance(node, (*_SCOPES, ast.ClassDef)):
            waiting.extendleft([*ast.iter_child_nodes(node)][::-1])


def _bindings(scope: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(scope, Function):
        yield from (
            (one.arg, one) for one in ast.walk(scope.args) if isinstance(one, ast.arg)
        )
    for node in own(scope):
        if isinstance(node, Definition):
            yield node.name, node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _paired(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value:
            yield from _paired(node.target, node.value)
        elif isinstance(node, _REBINDS):
            yield from _hidden(node.target, node)
        elif isinstance(node, ast.withitem) and node.optional_vars:
            yield from _hidden(node.optional_vars, node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield (alias.asname or alias.name.split(".")[0]), node


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.AST]]:
    """Names with their values, as far as a tuple stands on both sides."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif not isinstance(target, ast.Tuple | ast.List):
        return
    elif isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        for one, its in zip(target.elts, value.elts, strict=True):
            yield from _paired(one, its)
    else:
        yield from _hidden(target, target)


def _hidden(target: ast.AST, node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    names = (one for one in ast.walk(target) if isinstance(one, ast.Name))
    yield from ((one.id, node) for one in names if isinstance(one.ctx, ast.Store))


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


def asked(tree: ast.Module, name: str, line: int) -> ast.AST | None:
    """The definition of a name: the one that begins in a line, or the last outermost.

    Args:
        tree: All of the code.
        name: Of the function.
        line: Where it begins, with its decorators; 0 for the last outside of all.
    """
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, Definition) and node.name == name
        if (_first_line(node) == line if line else node in tree.body)
    ]
    return found[-1] if found else None


def reached(tree: ast.Module, names: Names, first: ast.AST | None) -> Iterator[ast.AST]:
    """What stands outside of definitions, the one asked for, and all that they name."""
    waiting = [
        node
        for node in tree.body
        if not isinstance(node, Definition) and not _is_main(node)
    ]
    found: list[ast.AST] = [*waiting, *([first] if first else [])]
    seen: set[ast.AST] = set()
    while found:
        for node in ast.walk(found.pop()):
            if node not in seen:
                seen.add(node)
                yield node
                found += _defined(names, node)


def _defined(names: Names, node: ast.AST) -> list[ast.AST]:
    if not isinstance(node, ast.Name):
        return []
    return [one for one in names.lookup(node) if isinstance(one, Definition)]


def _first_line(node: Definition) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _is_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


MAKES = {"Sequential", "Model", "load_model", "clone_model"}


def is_model(code: Code, node: ast.AST) -> bool:
    """Whether a name was given a model, or is called one and was given nothing else."""
    name = dotted(node)
    found = code.resolve(node)
    if isinstance(found, ast.Call):
        return makes_model(code, found)
    return found is None and name.split(".")[-1].lower() in ("model", "net", "network")


def makes_model(code: Code, call: ast.Call) -> bool:
    """Whether a call makes a model, by itself or in a function of the same file."""
    if called(call) in MAKES:
        return True
    function = code.resolve(call.func) if isinstance(call.func, ast.Name) else None
    if not isinstance(function, ast.FunctionDef):
        return False
    return any(
        _returns_model(code, one)
        for one in ast.walk(function)
        if isinstance(one, ast.Return)
    )


def _returns_model(code: Code, node: ast.Return) -> bool:
    found = code.resolve(node.value)
    return isinstance(found, ast.Call) and called(found) in MAKES
