"""The code of a training, parsed and never run: what stands where, and edits of it.

A place that is not certain is not returned: a wrong line costs a reader more than none.
"""

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from perfkit.training.diagnose.maker import Source
from perfkit.training.diagnose.source import (
    Definition,
    Function,
    Names,
    Scope,
    called_name,
    dotted,
    fit_calls,
    hides,
    is_literal,
    keyword,
    methods_of,
    of_kind,
    receiver,
    walk_scope,
)

T = TypeVar("T")
# Of Keras 3, in the order in which fit takes them without their names.
FIT_ARGUMENTS = (
    *("x", "y", "batch_size", "epochs", "verbose", "callbacks", "validation_split"),
    *("validation_data", "shuffle", "class_weight", "sample_weight", "initial_epoch"),
    *("steps_per_epoch", "validation_steps", "validation_batch_size"),
    "validation_freq",
)
# The methods that make a stage, where they are not called as its kind is; see
# ``diagnosis.pipeline``.
_METHODS = {
    "options": "with_options",
    "slices in memory": "from_tensor_slices",
    "one value": "from_tensors",
    "Python generator": "from_generator",
    "TFRecord files": "TFRecordDataset",
    "lines of text files": "TextLineDataset",
    "records of fixed length": "FixedLengthRecordDataset",
}
_DEEPEST = 8


class Unsure(Exception):
    """The place is not found, or another one may be meant as well.

    Args:
        mind: What the change as it was measured would break, in a sentence; "" where it
            is the place that is not certain.
        do: What to do instead: an imperative without its full stop.
    """

    def __init__(self, mind: str = "", do: str = "") -> None:
        super().__init__(mind)
        self.mind, self.do = mind, do


def require(value: T | None) -> T:
    """The value; ``Unsure`` is raised where there is none."""
    if value is None or value in ("", []):
        raise Unsure
    return value


def only(values: Sequence[T]) -> T:
    """The one value; ``Unsure`` is raised where there are none or several."""
    if len(values) != 1:
        raise Unsure
    return values[0]


@dataclass(frozen=True)
class Fit:
    """What gives a training its data and its arguments.

    Attributes:
        within: The call of ``fit``, or the tuple that a maker returns.
        model: What is trained.
        data: What it is trained on; None where that is not seen.
        options: What holds the arguments: the call itself, or a maker's dict; None
            where a maker returns none.
    """

    within: ast.Call | ast.Tuple
    model: ast.expr
    data: ast.expr | None
    options: ast.expr | None


class Code:
    """The code of a training, with the facts that a diagnosis has of it.

    Attributes:
        source: Where it stands.
        tree: All of the file or the cell.
        names: What binds each of its names.
        text: The same to be changed.
        nodes: What can run: what stands outside of functions, the maker, and all that
            these name. Of a script, everything.
        pipeline: The facts of its pipeline; nothing where there is none.

    Raises:
        SyntaxError: It is no Python.
    """

    def __init__(self, source: Source, facts: Mapping[str, Any]) -> None:
        self.facts, self.source = facts, source
        self.tree = ast.parse(source.text)
        self.text = Text(source.text)
        self.names = Names(self.tree)
        self.pipeline: dict[str, Any] = facts.get("pipeline") or {}
        self._stages: list[dict[str, Any]] = self.pipeline.get("stages", [])
        makers = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, Definition) and node.name == source.function
            if (
                min([node.lineno, *(d.lineno for d in node.decorator_list)])
                == source.line
                if source.line
                else node in self.tree.body
            )
        ]
        self._maker = makers[-1] if makers else None
        reached = self._reached() if source.function else ast.walk(self.tree)
        self.nodes = tuple(reached)

    def _reached(self) -> Iterator[ast.AST]:
        waiting: list[ast.AST] = [
            node
            for node in self.tree.body
            if not isinstance(node, Definition)
            if not (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))
        ]
        waiting += [self._maker] if self._maker else []
        visited: set[ast.AST] = set()
        while waiting:
            for node in ast.walk(waiting.pop()):
                if node in visited:
                    continue
                visited.add(node)
                yield node
                bound = self.names.lookup(node) if isinstance(node, ast.Name) else ()
                waiting += [value for value in bound if isinstance(value, Definition)]

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        """Every call that can run."""
        return tuple(self.of_kind(ast.Call))

    def of_kind(self, kind: Any) -> list[Any]:
        """Every node of this kind, a class of ``ast`` or several, that can run."""
        return [node for node in self.nodes if isinstance(node, kind)]

    @cached_property
    def assignments(self) -> tuple[tuple[ast.Assign, ast.expr], ...]:
        """Every assignment that can run, with each of its targets."""
        nodes = self.of_kind(ast.Assign)
        return tuple((node, target) for node in nodes for target in node.targets)

    def calls_of(self, *names: str) -> list[ast.Call]:
        """Every call that can run of what has one of these last words."""
        return [call for call in self.calls if called_name(call) in names]

    def resolve(self, node: ast.AST | None, deep: int = 0) -> ast.AST | None:
        """What a name stands for, where that is one thing only; all else is itself."""
        if not isinstance(node, ast.Name) or deep > _DEEPEST:
            return node
        bound = self.names.lookup(node)
        value = bound[0] if len(bound) == 1 else None
        # A statement, and a tuple that is unpacked, hide the value.
        hidden = isinstance(getattr(value, "ctx", None), ast.Store)
        if hidden or not isinstance(value, ast.expr | Definition):
            return None
        return self.resolve(value, deep + 1)

    def number(self, node: ast.AST | None) -> float | None:
        """The number that a node stands for."""
        value = getattr(self.resolve(node), "value", None)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value

    def defines(self, method: str) -> bool:
        """Whether a class of the file has a method of its own of this name."""
        return method in methods_of(*self.of_kind(ast.ClassDef))

    # Where it trains.

    @cached_property
    def fit(self) -> Fit | None:
        """Where ``fit`` is called, or what a maker returns in its place."""
        if isinstance(self._maker, Function):
            return self._returned(self._maker)
        calls = fit_calls(self.tree)
        if self.source.fit >= 0:
            calls = calls[self.source.fit : self.source.fit + 1]
        model = receiver(calls[0]) if len(calls) == 1 else None
        # A class of the script's own that fits may take other arguments.
        if model is None or self.defines("fit"):
            return None
        return Fit(calls[0], model, keyword(calls[0], "x", 0), calls[0])

    def _returned(self, function: ast.AST, deep: int = 0) -> Fit | None:
        """What a maker returns, itself or through another of the same file."""
        returns = [n for n in walk_scope(function) if isinstance(n, ast.Return)]
        if len(returns) != 1 or deep > _DEEPEST:
            return None
        value = self.resolve(returns[0].value)
        if isinstance(value, ast.Call):
            maker = self.resolve(value.func)
            return (
                self._returned(maker, deep + 1) if isinstance(maker, Function) else None
            )
        if not isinstance(value, ast.Tuple) or len(value.elts) not in (2, 3):
            return None
        model, data, *options = value.elts
        if options and not isinstance(options[0], ast.Dict):
            # Somebody may put more into a dict that has a name.
            return None
        return Fit(value, model, data, options[0] if options else None)

    @cached_property
    def compile(self) -> ast.Call | None:
        """The one call that compiles the model, where it is made or beside ``fit``."""
        if self.fit is None or self.defines("compile"):
            return None
        model = self.fit.model
        maker = self.resolve(getattr(self.resolve(model), "func", None))
        function = self.names.function_of(self.fit.within)
        calls = [
            call
            for call in self.calls_of("compile")
            if dotted(receiver(call) or call) not in ("", "re")
            if maker in [*self.names.above(call)]
            or (
                dotted(receiver(call) or call) == dotted(model)
                and self.names.function_of(call) is function
            )
        ]
        return calls[0] if len(calls) == 1 else None

    @property
    def data(self) -> ast.expr:
        """What the training is given."""
        return require(self.fit.data if self.fit else None)

    def argument(self, name: str) -> tuple[ast.expr, int] | None:
        """What holds an argument of ``fit``, and its place in there; None without."""
        options = self.fit.options if self.fit else None
        return place_of(options, name, FIT_ARGUMENTS) if options else None

    def value(self, name: str) -> ast.expr | None:
        """What ``fit`` is given for an argument."""
        place = self.argument(name)
        return value_at(*place) if place else None

    # The stages of its pipeline, by the lines that made them when it ran.

    def line_of(self, stage: Mapping[str, Any]) -> int:
        """The line of this code that made a stage; 0 where another file did."""
        file, cell, line = stage.get("line") or ("", 0, 0)
        if Path(file).name != Path(self.source.path).name:
            return 0
        first = self.source.cells[cell - 1 : cell] if cell else (1,)
        return first[0] + line - 1 if line and first else 0

    def stages(self) -> Iterator[tuple[dict[str, Any], ast.Call | None]]:
        """The stages that ran, with the call that made each; None where unsure."""
        keys = [(stage["kind"], self.line_of(stage)) for stage in self._stages]
        for place, (stage, key) in enumerate(zip(self._stages, keys, strict=True)):
            calls = self._calls_at(*key)
            # A loop may have made several with one call.
            is_sure = len(calls) == keys.count(key)
            yield stage, calls[keys[:place].count(key)] if is_sure else None

    def _calls_at(self, kind: str, line: int) -> list[ast.Call]:
        """The calls in a line that make a stage of this kind, the first first."""
        method = _METHODS.get(kind, kind.replace(" ", "_"))
        calls = [
            call
            for call in of_kind(ast.Call, self.tree)
            if called_name(call) == method and line_of(call) == line
        ]
        return sorted(calls, key=self.text.end)

    def result_of(self, place: int) -> ast.expr:
        """The expression that gives what a stage of the pipeline makes."""
        calls = [call for _, call in self.stages()]
        if calls[place] is None and place + 1 < len(calls):
            return require(receiver(require(calls[place + 1])))
        return calls[place] or self.data

    # What stands around a node.

    def tensorflow(self, node: ast.AST) -> str:
        """What TensorFlow is called where a node stands."""
        for scope in self.names.above(node):
            bindings = self.names.bound(scope) if isinstance(scope, Scope) else {}
            for name, nodes in bindings.items():
                if any(getattr(node, "name", "") == "tensorflow" for node in nodes):
                    return name
        raise Unsure


def line_of(node: ast.AST) -> int:
    """Where a reader looks for it: of a call, the line with what is called."""
    line: int | None = getattr(getattr(node, "func", None), "end_lineno", None)
    first: int = getattr(node, "lineno", 1)
    return line or first


def place_of(
    within: ast.expr, name: str, positions: tuple[str, ...] = ()
) -> tuple[ast.expr, int] | None:
    """Where an argument stands in a call or in a dict of arguments."""
    if isinstance(within, ast.Dict):
        keys = [getattr(key, "value", None) for key in within.keys]
        return (within, keys.index(name)) if name in keys else None
    if not isinstance(within, ast.Call):
        return None
    for place, item in enumerate(nodes_in(within)):
        if isinstance(item, ast.Starred):
            positions = ()
        names = (item.arg,) if isinstance(item, ast.keyword) else positions[place:][:1]
        if names == (name,):
            return within, place
    return None


def value_at(within: ast.expr, place: int) -> ast.expr:
    """What stands at a place of a call or a dict: the value, without its name."""
    item = nodes_in(within)[place]
    return item.value if isinstance(item, ast.keyword) else item


# Its text, changed in a few places that its tree finds; all else stays.

# From where to where, in characters of the source, and what goes there instead.
Splice = tuple[int, int, str]
Placed = ast.expr | ast.stmt | ast.keyword
# What a method can be called on without brackets around it.
_PLAIN = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
# What may follow in a line that is over, behind an item's own brackets, before a comma.
_LINE_TAIL = re.compile(r"[^\S\n]*(#.*)?$", re.MULTILINE)
_CLOSING = re.compile(r"((\s|#.*\n)*\))*")
_COMMA = re.compile(r"(\s|#.*\n)*,")


class Text:
    """The text of a source, and what to do to it.

    Args:
        source: Its lines end in a line feed.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._lines = source.split("\n")
        lengths = (len(line) + 1 for line in self._lines)
        self._starts = [*itertools.accumulate(lengths, initial=0)]

    def start(self, node: Placed) -> int:
        """Where a node begins, in characters."""
        return self._place(node.lineno, node.col_offset)

    def end(self, node: Placed) -> int:
        """Where a node ends, in characters."""
        return self._place(node.end_lineno or 1, node.end_col_offset or 0)

    def applied(self, splices: Iterable[Splice]) -> str:
        """The source with all changes; those at one place in the order given.

        Raises:
            ValueError: Two of them change the same characters.
        """
        parts, position = [], 0
        for start, end, new in sorted(splices, key=lambda splice: splice[0]):
            if start < position:
                raise ValueError("Two changes of one place.")
            parts += [self.source[position:start], new]
            position = end
        return "".join([*parts, self.source[position:]])

    def add(self, within: ast.expr, item: str) -> Iterator[Splice]:
        """One more item at the end of a call, a list, a dict or a tuple."""
        items, closed = self._items(within), self._closed(within)
        if not items:
            yield closed, closed, item
            return
        start, end = items[-1]
        comma = _COMMA.match(self.source, end, closed)
        line_span = self._lines_of(start, comma.end()) if comma else None
        if line_span:
            first, end = line_span[0], line_span[1] - 1
            yield end, end, f"\n{self.source[first:start]}{item},"
        else:
            yield end, end, f", {item}"

    def replace(self, within: ast.expr, place: int, item: str) -> Iterator[Splice]:
        """Another item in the place of one."""
        yield *self._items(within)[place], item

    def remove(self, within: ast.expr, place: int) -> Iterator[Splice]:
        """Leave an item out, with its comma, and with its lines if it has its own."""
        items, closed = self._items(within), self._closed(within)
        start, end = items[place]
        comma = _COMMA.match(self.source, end, closed)
        if len(items) == 1:
            is_call = isinstance(within, ast.Call)
            before = self.source.rindex("(", 0, start) if is_call else start - 1
            yield before + 1, closed, ""
        elif line_span := self._lines_of(start, comma.end() if comma else end):
            yield *line_span, ""
        elif place + 1 < len(items):
            yield start, items[place + 1][0], ""
        else:
            yield items[place - 1][1], end, ""

    def delete(self, statement: ast.stmt, body: Sequence[ast.stmt]) -> Iterator[Splice]:
        """Leave a statement out of a body; nothing where it shares its line."""
        start, end = self.start(statement), self.end(statement)
        if len(body) == 1:
            yield start, end, "pass"
        elif line_span := self._lines_of(start, end):
            yield *line_span, ""

    def call_on(self, node: ast.expr, method: str) -> Iterator[Splice]:
        """Call one more method, such as ``".cache()"``, on what an expression gives."""
        start, end = self.start(node), self.end(node)
        if not isinstance(node, _PLAIN):
            yield start, start, "("
            yield end, end, f"){method}"
            return
        function = getattr(node, "func", None)
        if isinstance(function, ast.Attribute):
            dot = self.source.rindex(".", 0, self.end(function) - len(function.attr))
            indent = self.source[:dot].rpartition("\n")[2]
            continued = self.source[: dot - len(indent)].endswith("\\\n")
            if not (indent.strip() or continued):
                # A comment stays with the line that it belongs to.
                tail = _LINE_TAIL.match(self.source, end)
                end = tail.end() if tail else end
                method = f"\n{indent}{method}"
        yield end, end, method

    def _items(self, within: ast.expr) -> list[tuple[int, int]]:
        """Where each item of a call, a list, a dict or a tuple begins and ends."""
        lasts = firsts = nodes_in(within)
        if isinstance(within, ast.Dict):
            firsts = [k or v for k, v in zip(within.keys, within.values, strict=True)]
        closed, spans = self._closed(within), []
        for first, last in zip(firsts, lasts, strict=True):
            behind = _CLOSING.match(self.source, self.end(last), closed)
            spans.append((self.start(first), behind.end() if behind else closed))
        return spans

    def _closed(self, within: ast.expr) -> int:
        """Where the closing bracket of a node stands; a tuple may have none."""
        first, end = self.source[self.start(within)], self.end(within)
        return end if isinstance(within, ast.Tuple) and first != "(" else end - 1

    def _lines_of(self, start: int, end: int) -> tuple[int, int] | None:
        """The whole lines around what begins and ends there; None if it shares them."""
        before = self.source[:start].rpartition("\n")[2]
        tail = _LINE_TAIL.match(self.source, end)
        if tail is None or before.strip():
            return None
        return start - len(before), tail.end() + 1

    def _place(self, line: int, column: int) -> int:
        """A column of the tree counts bytes of UTF-8."""
        before = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(before)


def nodes_in(within: ast.expr) -> list[ast.expr | ast.keyword]:
    """The items of a call, a list, a dict or a tuple, in the order of the source."""
    if isinstance(within, ast.Call):
        nodes: list[ast.expr | ast.keyword] = [*within.args, *within.keywords]
        return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))
    if isinstance(within, ast.Dict):
        return [*within.values]
    return [*getattr(within, "elts", ())]


# Edits: arguments that are given, and statements that go.

# As many arguments of compile stand in front of those that are set here.
_COMPILED_BY_PLACE = 5


def compile_with(code: Code, name: str, value: str) -> Iterator[Splice]:
    """Give compile an argument."""
    call = require(code.compile)
    if len(call.args) > _COMPILED_BY_PLACE:
        raise Unsure
    yield from set_argument(code, call, name, value)


def fit_with(code: Code, name: str, value: str) -> Iterator[Splice]:
    """Give fit an argument: in its call, or in the dict that a maker returns."""
    fit = require(code.fit)
    if fit.options is None:
        yield from code.text.add(fit.within, f'{{"{name}": {value}}}')
        return
    by_place = FIT_ARGUMENTS if fit.options is fit.within else ()
    yield from set_argument(code, fit.options, name, value, by_place)


def set_argument(
    code: Code,
    within: ast.expr,
    name: str,
    value: str,
    by_place: tuple[str, ...] = (),
) -> Iterator[Splice]:
    """Give an argument another value, or give it at all."""
    item = f'"{name}": {value}' if isinstance(within, ast.Dict) else f"{name}={value}"
    at = place_of(within, name, by_place)
    if at is not None:
        positional = isinstance(within, ast.Call) and at[1] < len(within.args)
        yield from code.text.replace(*at, value if positional else item)
        return
    # More may be given than is written there.
    if None in getattr(within, "keys", ()) or (
        isinstance(within, ast.Call) and hides(within)
    ):
        raise Unsure
    yield from code.text.add(within, item)


def delete(code: Code, node: ast.AST) -> Iterator[Splice]:
    """Take out the statement that a node is, or that has no other value."""
    nodes = [node, *code.names.above(node)]
    statement, holder = nodes[:2] if isinstance(node, ast.stmt) else nodes[1:3]
    alone = node in (statement, getattr(statement, "value", None))
    if not isinstance(statement, ast.stmt) or not alone:
        raise Unsure
    bodies = (getattr(holder, field, []) for field in ("body", "orelse", "finalbody"))
    body = only([body for body in bodies if statement in body])
    yield from require([*code.text.delete(statement, body)])


def is_true(code: Code, node: ast.expr) -> bool:
    """Whether a value is true, by itself or by a name that stands for nothing else."""
    return is_literal(code.resolve(node), True)


# Lines that are shown where no edit of one place does it.


def line_of_compile(code: Code) -> int:
    """The line that compiles the model."""
    return line_of(require(code.compile))


def line_of_fit(code: Code) -> int:
    """The line that trains it."""
    return line_of(require(code.fit).within)


def line_of_definition(code: Code, *paths: str) -> int:
    """The line of the one definition that these name, such as "__main__:Own.step"."""
    names = {path.replace(":", ".").rpartition(".")[2] for path in paths}
    nodes = code.of_kind(ast.ClassDef | Function)
    return line_of(only([node for node in nodes if getattr(node, "name", "") in names]))


def line_of_stage(
    about: Callable[[dict[str, Any]], Any] = lambda stage: False, behind: str = ""
) -> Callable[[Code], int]:
    """What finds the line of the first stage that a cause is about, or the last one.

    ``behind`` is the kind of the stage from which on it is looked for; "" for any.
    """

    def line(code: Code) -> int:
        stages = code.pipeline.get("stages", [])
        if behind:
            kinds = [stage["kind"] for stage in stages]
            stages = stages[kinds.index(behind) :]
        return code.line_of(([*filter(about, stages)] or stages[-1:])[0])

    return line
