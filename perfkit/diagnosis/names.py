"""What a tree of Python says by itself, and what binds its names, scope by scope."""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

Node = TypeVar("Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Import = ast.Import | ast.ImportFrom
LOOPS = (ast.For, ast.While, ast.AsyncFor)
_REBINDS = (ast.AugAssign, ast.For, ast.AsyncFor, ast.comprehension)
_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DATASETS = ("PyDataset", "Sequence")


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


def values_of(call: ast.Call) -> list[ast.expr]:
    """All that a call gives, by place and by name."""
    return [*call.args, *(one.value for one in call.keywords)]


def hides(call: ast.Call) -> bool:
    """Whether a call gives what cannot be seen, as ``**options`` does."""
    starred = any(isinstance(one, ast.Starred) for one in call.args)
    return starred or any(one.arg is None for one in call.keywords)


def receiver(node: ast.AST) -> ast.expr | None:
    """What a method is called on; None where nothing is, or nothing is called."""
    function = node.func if isinstance(node, ast.Call) else node
    return function.value if isinstance(function, ast.Attribute) else None


def of_kind(kind: type[Node], *within: ast.AST) -> Iterator[Node]:
    """Every node of a kind that stands in others, or is one of them."""
    nodes = (node for one in within for node in ast.walk(one))
    return (node for node in nodes if isinstance(node, kind))


def calls_in(*within: ast.AST) -> set[str]:
    """The last words of all that is called there."""
    return {called(call) for call in of_kind(ast.Call, *within)}


def names_in(*within: ast.AST) -> set[str]:
    """Every name that stands there, by itself or before a dot."""
    return {one.id for one in of_kind(ast.Name, *within)}


def stored_in(*within: ast.AST) -> set[str]:
    """Every name that is given a value there."""
    names = of_kind(ast.Name, *within)
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}


def is_literal(node: ast.AST | None, value: object) -> bool:
    """Whether a node is that very constant, such as ``True``."""
    return isinstance(node, ast.Constant) and node.value is value


def is_dataset(node: ast.ClassDef) -> bool:
    """Whether a class is a PyDataset."""
    return any(called(base) in _DATASETS for base in node.bases)


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

    def nearest(self, node: ast.AST, kind: type[Node]) -> Node | None:
        """The innermost node of a kind that a node stands in."""
        return next((one for one in self.above(node) if isinstance(one, kind)), None)

    def function_of(self, node: ast.AST) -> Function | None:
        """The function that a node stands in; None outside of all."""
        return next((f for f in self.above(node) if isinstance(f, Function)), None)

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


def _bindings(scope: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(scope, Function):
        yield from ((one.arg, one) for one in of_kind(ast.arg, scope.args))
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
        elif isinstance(node, Import):
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
    return ((name, node) for name in stored_in(target))
