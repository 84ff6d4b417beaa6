"""Source code as a training runs it: what of it can run, and what stands where."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from perfkit.diagnosis.hints.chains import Chains
from perfkit.diagnosis.source import (
    LOOPS,
    Definition,
    Function,
    Names,
    called,
    dotted,
    hides,
    keyword,
    of_kind,
    parameters,
)

Hinted = tuple[ast.AST, str]
_DEEPEST = 8
_EACH = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# What calls a function once that it is handed, as absl, typer and fire do.
_RUN = {"run", "Fire"}
_TF_FUNCTION = ("tf.function", "tensorflow.function")
_MODELS = {"Sequential", "Model", "load_model", "clone_model"}
_MODEL_NAMES = ("model", "net", "network")


class Code:
    """A file or a cell, of which one function is asked for.

    Args:
        source: All of it.
        function: The name of that function; "" for all that stands there.
        line: Where its definition begins, with its decorators; 0 for the last one
            outside of all others.

    Attributes:
        tree: All of it.
        names: What binds each of its names.
        asked: The definition that is asked for.
        nodes: What can run: what stands outside of functions, the one asked for, and
            all that these name. Without one asked for, everything.
    """

    def __init__(self, source: str, function: str = "", line: int = 0) -> None:
        self.tree = ast.parse(source)
        self.names = Names(self.tree)
        found = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, Definition) and node.name == function
            if (_first_line(node) == line if line else node in self.tree.body)
        ]
        self.asked = found[-1] if found else None
        self.nodes = tuple(self._reached() if function else ast.walk(self.tree))

    def _reached(self) -> Iterator[ast.AST]:
        """What stands outside of definitions, the one asked for, and all they name."""
        waiting: list[ast.AST] = [
            node
            for node in self.tree.body
            if not isinstance(node, Definition) and not _is_main(node)
        ]
        waiting += [self.asked] if self.asked else []
        seen: set[ast.AST] = set()
        while waiting:
            for node in ast.walk(waiting.pop()):
                if node in seen:
                    continue
                seen.add(node)
                yield node
                bound = self.names.lookup(node) if isinstance(node, ast.Name) else ()
                waiting += [one for one in bound if isinstance(one, Definition)]

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        """Every call that can run."""
        return tuple(node for node in self.nodes if isinstance(node, ast.Call))

    @cached_property
    def assigned(self) -> tuple[tuple[ast.Assign, ast.expr], ...]:
        """Every assignment that can run, with each of its targets."""
        found = (node for node in self.nodes if isinstance(node, ast.Assign))
        return tuple((node, target) for node in found for target in node.targets)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Every function that can run."""
        return tuple(node for node in self.nodes if isinstance(node, Function))

    @cached_property
    def classes(self) -> tuple[ast.ClassDef, ...]:
        """Every class that is used."""
        return tuple(node for node in self.nodes if isinstance(node, ast.ClassDef))

    @cached_property
    def chains(self) -> Chains:
        """The pipelines that it makes."""
        return Chains(self)

    @cached_property
    def _uses(self) -> dict[ast.AST, list[ast.AST]]:
        """The names that are read for each thing that binds one, where they can run."""
        found: dict[ast.AST, list[ast.AST]] = defaultdict(list)
        for node in self.nodes:
            for one in self.bound(node):
                found[one].append(node)
        return dict(found)

    def named(self, *names: str) -> Iterator[ast.Call]:
        """Every call that can run of what has one of these last words."""
        return (call for call in self.calls if called(call) in names)

    def calls_of(self, function: ast.AST) -> list[ast.Call]:
        """The calls that can run of a function that has a name."""
        pairs = (
            (name, next(self.names.above(name)))
            for name in self._uses.get(function, [])
        )
        return [c for name, c in pairs if isinstance(c, ast.Call) and c.func is name]

    def is_handed_on(self, function: ast.AST) -> bool:
        """Whether a function is more than called: decorated, or given to another."""
        if not isinstance(function, ast.FunctionDef) or function.decorator_list:
            return True
        return len(self._uses.get(function, [])) > len(self.calls_of(function))

    def bound(self, node: ast.AST) -> list[ast.AST]:
        """What binds a name that is read; nothing for all else."""
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            return []
        return self.names.lookup(node)

    def resolve(self, node: ast.AST | None, deep: int = 0) -> ast.AST | None:
        """What a name stands for, where that is one thing only; all else is itself.

        A parameter stands for what the one call of its function gives.
        """
        if not isinstance(node, ast.Name) or deep > _DEEPEST:
            return node
        bound = self.names.lookup(node)
        if len(bound) != 1:
            return None
        value = self._given(bound[0]) if isinstance(bound[0], ast.arg) else bound[0]
        # A statement, and a tuple that is unpacked, hide the value.
        hidden = isinstance(getattr(value, "ctx", None), ast.Store)
        if hidden or not isinstance(value, ast.expr | Definition):
            return None
        return self.resolve(value, deep + 1)

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

    def calls_within(self, node: ast.AST | None) -> Iterator[ast.Call]:
        """The calls in a function and in those of the same file that it calls."""
        waiting, seen = [self.resolve(node)], set[ast.AST]()
        while waiting:
            function = waiting.pop()
            if isinstance(function, Function) and function not in seen:
                seen.add(function)
                for call in of_kind(ast.Call, function):
                    yield call
                    waiting.append(self.resolve(call.func))

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

    def runs_again(self, node: ast.AST, deep: int = 0) -> bool:
        """Whether a node may run more than once, by itself or with its function."""
        each = any(isinstance(one, _EACH) for one in self.names.above(node))
        if each or self.loop_of(node) or deep > _DEEPEST:
            return True
        function = self.names.function_of(node)
        # What makes a training is called once.
        if function is None or function is self.asked:
            return False
        # A method is known by its last word alone.
        name = getattr(function, "name", "lambda")
        calls = self.calls_of(function) or [
            call for call in self.named(name) if function not in self.names.above(call)
        ]
        known = {call.func for call in calls}
        handed = [n for n in self._uses.get(function, ()) if n not in known]
        takers = (self.names.nearest(one, ast.Call) for one in handed)
        # Who is handed it may call it as often as they like, but who runs a script.
        often = any(taker is None or called(taker) not in _RUN for taker in takers)
        if often or len(calls) + len(handed) > 1:
            return True
        return any(self.runs_again(one, deep + 1) for one in (*calls, *handed))

    def guarded(self, node: ast.AST) -> bool:
        """Whether a condition stands between a node and its loop or function."""
        for above in self.names.above(node):
            if isinstance(above, (*LOOPS, ast.FunctionDef, ast.Lambda)):
                return False
            if isinstance(above, ast.If | ast.IfExp) and not self._always(above.test):
                return True
        return False

    def _always(self, test: ast.expr) -> bool:
        """Whether a condition on every n-th batch holds for each, n being 1."""
        if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.BinOp):
            return False
        period = test.left.right
        options = [one for call in self.calls for one in call.keywords]
        given = [one.value for one in options if (one.arg or "") == called(period)]
        every = [self.number(one) for one in given or [period]]
        return isinstance(test.left.op, ast.Mod) and every == [1]

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

    def is_model(self, node: ast.AST) -> bool:
        """Whether a name was given a model, or is called one and was given nothing."""
        found = self.resolve(node)
        if isinstance(found, ast.Call):
            return self.makes_model(found)
        return found is None and dotted(node).split(".")[-1].lower() in _MODEL_NAMES

    def makes_model(self, call: ast.Call) -> bool:
        """Whether a call makes a model, by itself or in a function of the same file."""
        if called(call) in _MODELS:
            return True
        function = self.resolve(call.func) if isinstance(call.func, ast.Name) else None
        if not isinstance(function, ast.FunctionDef):
            return False
        returns = (self.resolve(one.value) for one in of_kind(ast.Return, function))
        return any(isinstance(o, ast.Call) and called(o) in _MODELS for o in returns)

    def _given(self, parameter: ast.arg) -> ast.AST | None:
        """What the only call gives for a parameter; its default where none does."""
        function = self.names.function_of(parameter)
        if function is None or parameter not in parameters(function):
            return None
        calls = self.calls_of(function)
        if len(calls) > 1 or any(map(hides, calls)):
            return None
        # Without a call nobody knows who calls it, and with what.
        if not calls and function is not self.asked:
            return None
        place = parameters(function).index(parameter)
        found = keyword(calls[0], parameter.arg, place) if calls else None
        return found or _default(function, parameter)


def is_tf_function(node: ast.expr) -> bool:
    """Whether it is ``tf.function``, or a call of it or of its partial."""
    if isinstance(node, ast.Call):
        of = node.args[0] if called(node) == "partial" and node.args else node.func
        return dotted(of) in _TF_FUNCTION
    return dotted(node) in _TF_FUNCTION


def _default(function: Function, parameter: ast.arg) -> ast.expr | None:
    arguments = function.args
    placed = [*arguments.posonlyargs, *arguments.args]
    if parameter in placed:
        back = placed.index(parameter) - len(placed)
        given = arguments.defaults
        return given[back] if -back <= len(given) else None
    return arguments.kw_defaults[arguments.kwonlyargs.index(parameter)]


def _first_line(node: Definition) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _is_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
