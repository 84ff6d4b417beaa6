"""Marks the steps of the loops of a script, as ``perfkit.steps`` does by hand."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.script_code import name_of_call

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What stands in each step of a loop of one's own.
STEPS = frozenset({"GradientTape", "train_on_batch", "apply_gradients", "train_step"})
MARK = "__perfkit_steps__"
# What wraps the data of a loop without being them.
_WRAPPERS = frozenset({"enumerate", "tqdm"})
# A value for ever, for a loop that goes on for ever.
_FOR_EVER = "iter(int, 1)"
_Loop = ast.For | ast.While


class MarkSteps(ast.NodeTransformer):
    """Marks the loops of a script whose turns are steps of a training.

    A turn is a step where it takes gradients, itself or through functions of the same
    file, outside of further loops: a loop over epochs is around steps, and one that
    trains a critic several times is a part of a step.

    Args:
        tree: The script; it is changed.

    Attributes:
        count: Loops that are marked, by their author or here.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        self._stepping = set(STEPS)
        # Who calls what makes a step makes one, however many calls lie between.
        for _ in self._functions:
            makes = (f.name for f in self._functions if self._makes_step(f))
            self._stepping.update(makes)
        self._turns = [loop for loop in _loops(tree) if self._is_turn(loop)]
        self._in_steps = self._reached_from(self._turns)
        self.count = sum(_is_mark(node) for node in ast.walk(tree))
        if not self.count:
            self.visit(tree)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Leave alone what becomes a graph, and what is a part of a step."""
        if _is_graph(node) or node.name in self._in_steps:
            return node
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        """Mark the loop if each turn is a step."""
        if node not in self._turns:
            return self.generic_visit(node)
        node.iter = self._marked(node.iter)
        return ast.fix_missing_locations(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        """Mark the loop if each turn is a step."""
        if node not in self._turns:
            return self.generic_visit(node)
        data = self._marked(ast.parse(_FOR_EVER, mode="eval").body)
        loop = ast.For(ast.Name("_", ast.Store()), data, node.body, [])
        return ast.fix_missing_locations(ast.copy_location(loop, node))

    def _marked(self, data: ast.expr) -> ast.expr:
        if isinstance(data, ast.Call) and name_of_call(data) in _WRAPPERS and data.args:
            data.args[0] = self._marked(data.args[0])
            return data
        self.count += 1
        call = ast.Call(ast.Name(MARK, ast.Load()), [data], [])
        return ast.copy_location(call, data)

    def _makes_step(self, function: ast.FunctionDef) -> bool:
        inside = _outside_of_loops(function.body, in_graph=_is_graph(function))
        return bool(_called(inside) & self._stepping)

    def _is_turn(self, loop: _Loop) -> bool:
        # Where a loop ends by what it counts, no other data may be given to it.
        if isinstance(loop, ast.While) and not _is_endless(loop):
            return False
        return bool(_called(_outside_of_loops(loop.body)) & self._stepping)

    def _reached_from(self, loops: Iterable[_Loop]) -> set[str]:
        """Names of all functions that these loops call, and those call."""
        names = set[str]()
        new = _called(_anywhere(loops))
        while new - names:
            names |= new
            new = _called(_anywhere(f for f in self._functions if f.name in names))
        return names


def _loops(node: ast.AST) -> Iterator[_Loop]:
    """Every loop that stands there, but for those in what becomes a graph."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and _is_graph(child):
            continue
        if isinstance(child, _Loop):
            yield child
        yield from _loops(child)


def _outside_of_loops(
    nodes: Iterable[ast.AST], *, in_graph: bool = False
) -> Iterator[ast.AST]:
    """All that stands there and in no loop; in a graph, loops over data alone count."""
    for node in nodes:
        if isinstance(node, _Loop) and not (in_graph and _is_over_range(node)):
            continue
        yield node
        yield from _outside_of_loops(ast.iter_child_nodes(node), in_graph=in_graph)


def _anywhere(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield from ast.walk(node)


def _called(nodes: Iterable[ast.AST]) -> set[str]:
    """What these call themselves, or hand over to be called."""
    names = set[str]()
    for call in nodes:
        if isinstance(call, ast.Call):
            names.add(name_of_call(call))
            names.update(a.id for a in call.args if isinstance(a, ast.Name))
            names.update(a.attr for a in call.args if isinstance(a, ast.Attribute))
    return names


def _is_graph(function: ast.FunctionDef) -> bool:
    return any("function" in ast.unparse(by) for by in function.decorator_list)


def _is_endless(loop: ast.While) -> bool:
    return isinstance(loop.test, ast.Constant) and bool(loop.test.value)


def _is_over_range(loop: _Loop) -> bool:
    over = getattr(loop, "iter", None)
    return isinstance(over, ast.Call) and name_of_call(over) == "range"


def _is_mark(node: ast.AST) -> bool:
    """Whether this is ``perfkit.steps(...)``."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "perfkit.steps"
