"""Source code as a training runs it: what of it can run, and what stands where."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.chains import Chains
from perfkit.diagnosis.hints.names import (
    Definition,
    Function,
    Names,
    called,
    dotted,
    keyword,
    own,
    parameters,
)
from perfkit.diagnosis.hints.reach import asked, reached

if TYPE_CHECKING:
    from collections.abc import Iterator

Hinted = tuple[ast.AST, str]
LOOPS = (ast.For, ast.While, ast.AsyncFor)
_DEEPEST = 8
_TF_FUNCTION = ("tf.function", "tensorflow.function")
_PER_BATCH = {
    *("on_batch_begin", "on_batch_end"),
    *("on_train_batch_begin", "on_train_batch_end"),
}


class Code:
    """A file or a cell, of which one function is asked for.

    Attributes:
        tree: All of it.
        names: What binds each of its names.
        nodes: What can run: what stands outside of functions, the one asked for, and
            all that these name. Without one asked for, everything.
    """

    def __init__(self, source: str, function: str = "", line: int = 0) -> None:
        self.tree = ast.parse(source)
        self.names = Names(self.tree)
        self.asked = asked(self.tree, function, line)
        self.nodes = tuple(
            reached(self.tree, self.names, self.asked)
            if function
            else ast.walk(self.tree)
        )

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        """Every call that can run."""
        return tuple(node for node in self.nodes if isinstance(node, ast.Call))

    @cached_property
    def _calls_of(self) -> dict[ast.AST, list[ast.Call]]:
        found: dict[ast.AST, list[ast.Call]] = defaultdict(list)
        for call in self.calls:
            for one in self.bound(call.func):
                found[one].append(call)
        return dict(found)

    @cached_property
    def uses_of(self) -> dict[ast.AST, int]:
        """How often each definition is named where it can run."""
        found: dict[ast.AST, int] = defaultdict(int)
        for node in self.nodes:
            for one in self.bound(node):
                found[one] += 1
        return dict(found)

    def bound(self, node: ast.AST) -> list[ast.AST]:
        """What binds a name that is read; nothing for all else."""
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            return []
        return self.names.lookup(node)

    @cached_property
    def _keywords(self) -> dict[str, list[ast.expr]]:
        found: dict[str, list[ast.expr]] = defaultdict(list)
        for call in self.calls:
            for one in call.keywords:
                found[one.arg or ""].append(one.value)
        return found

    @cached_property
    def chains(self) -> Chains:
        """The pipelines that it makes."""
        return Chains(self)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Every function that can run."""
        return tuple(node for node in self.nodes if isinstance(node, Function))

    @cached_property
    def classes(self) -> tuple[ast.ClassDef, ...]:
        """Every class that is used."""
        return tuple(node for node in self.nodes if isinstance(node, ast.ClassDef))

    def resolve(self, node: ast.AST | None, deep: int = 0) -> ast.AST | None:
        """What a name stands for, where that is one thing only; all else is itself.

        A parameter stands for what the one call of its function gives.
        """
        if not isinstance(node, ast.Name) or deep > _DEEPEST:
            return node
        bound = self.names.lookup(node)
        if len(bound) != 1:
            return None
        (only,) = bound
        value = self._given(only) if isinstance(only, ast.arg) else only
        return self.resolve(value, deep + 1) if _is_value(value) else None

    def constant(self, node: ast.AST | None) -> ast.Constant | None:
        """The constant that a node stands for."""
        found = self.resolve(node)
        return found if isinstance(found, ast.Constant) else None

    def number(self, node: ast.AST | None) -> float | None:
        """The number that a node stands for."""
        found = self.constant(node)
        value = found.value if found else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value

    def calls_of(self, function: ast.AST) -> list[ast.Call]:
        """The calls that can run of a function that has a name."""
        return self._calls_of.get(function, [])

    def loop_of(self, node: ast.AST) -> ast.For | ast.While | ast.AsyncFor | None:
        """The innermost loop whose body a node stands in, within its function."""
        inner = node
        for above in self.names.above(node):
            if isinstance(above, Function):
                return None
            if isinstance(above, LOOPS) and inner in above.body:
                return above
            inner = above
        return None

    def is_per_batch(self, node: ast.AST) -> bool:
        """Whether a node stands in what a callback does at each batch."""
        function = self.names.function_of(node)
        return getattr(function, "name", "") in _PER_BATCH

    def guarded(self, node: ast.AST) -> bool:
        """Whether a condition stands between a node and its loop or function."""
        for above in self.names.above(node):
            if isinstance(above, (*LOOPS, ast.FunctionDef, ast.Lambda)):
                return False
            if isinstance(above, ast.If | ast.IfExp) and not self._always(above.test):
                return True
        return False

    def traced(self, function: ast.AST | None) -> ast.expr | None:
        """What makes a graph of a function: its decorator or the call around it."""
        found = self.resolve(function)
        if isinstance(found, ast.FunctionDef):
            return next((d for d in found.decorator_list if is_tf_function(d)), None)
        if isinstance(found, ast.Call) and is_tf_function(found):
            return found
        return None

    def in_graph(self, node: ast.AST) -> bool:
        """Whether a node stands in a function that a graph is made of."""
        return any(self.traced(above) for above in self.names.above(node))

    def _always(self, test: ast.expr) -> bool:
        """Whether a condition on every n-th batch holds for each, n being 1."""
        if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.BinOp):
            return False
        period = test.left.right
        given = self._keywords.get(called(period), [period])
        every = [self.number(one) for one in given]
        return isinstance(test.left.op, ast.Mod) and every == [1]

    def _given(self, parameter: ast.arg) -> ast.AST | None:
        """What the only call gives for a parameter; its default where none does."""
        function = self.names.function_of(parameter)
        if not isinstance(function, Function):
            return None
        calls = self.calls_of(function)
        if len(calls) > 1 or any(_hides(call) for call in calls):
            return None
        # Without a call nobody knows who calls it, and with what.
        if not calls and function is not self.asked:
            return None
        named = parameters(function)
        if parameter not in named:
            return None
        place = named.index(parameter)
        for call in calls:
            found = keyword(call, parameter.arg, place)
            if found is not None:
                return found
        return _default(function, parameter)


def is_tf_function(node: ast.expr) -> bool:
    """Whether it is ``tf.function``, or a call of it or of its partial."""
    if isinstance(node, ast.Call):
        of = node.args[0] if called(node) == "partial" and node.args else node.func
        return dotted(of) in _TF_FUNCTION
    return dotted(node) in _TF_FUNCTION


def within_own(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in a node that run when it does."""
    return (one for one in (node, *own(node)) if isinstance(one, ast.Call))


def _hides(call: ast.Call) -> bool:
    """Whether a call gives what cannot be seen, as ``**options`` does."""
    starred = any(isinstance(one, ast.Starred) for one in call.args)
    return starred or any(one.arg is None for one in call.keywords)


def _default(function: Function, parameter: ast.arg) -> ast.expr | None:
    arguments = function.args
    placed = [*arguments.posonlyargs, *arguments.args]
    if parameter in placed:
        back = placed.index(parameter) - len(placed)
        given = arguments.defaults
        return given[back] if -back <= len(given) else None
    return arguments.kw_defaults[arguments.kwonlyargs.index(parameter)]


def _is_value(node: ast.AST | None) -> bool:
    """Whether what binds a name is its value, not a statement that hides it."""
    hidden = isinstance(getattr(node, "ctx", None), ast.Store)
    return isinstance(node, ast.expr | Definition) and not hidden
