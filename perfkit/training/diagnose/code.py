"""The code of a training, parsed and never run: what stands where, and edits of it.

A place that is not certain is not returned: a wrong line costs a reader more than none.
"""

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from perfkit.training.diagnose.maker import Source
from perfkit.training.diagnose.source import (
    Definition,
    called_name,
    dotted,
    fit_calls,
    hides,
    is_literal,
    methods_of,
    of_kind,
    receiver,
)

T = TypeVar("T")
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


class Unsure(Exception):
    """The place is not found, or another one may be meant as well."""


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


class Code:
    """The code of a training, with the facts that a diagnosis has of it.

    Attributes:
        source: Where it stands.
        tree: All of the file or the cell.
        parents: What each of its nodes stands in.
        text: The same to be changed.
        nodes: What can run: what stands outside of functions, the maker, and all that
            these name. Of a script, everything.
        pipeline: The facts of its pipeline; nothing where there is none.
    """

    def __init__(self, source: Source, facts: Mapping[str, Any]) -> None:
        self.facts, self.source = facts, source
        self.tree = ast.parse(source.text)
        self.text = Text(source.text)
        self.parents = {
            child: node
            for node in ast.walk(self.tree)
            for child in ast.iter_child_nodes(node)
        }
        self.pipeline: dict[str, Any] = facts.get("pipeline") or {}
        self._stages: list[dict[str, Any]] = self.pipeline.get("stages", [])
        nodes = ast.walk(self.tree)
        self._definitions = [n for n in nodes if isinstance(n, Definition)]
        reached = self._reached() if source.function else ast.walk(self.tree)
        self.nodes = tuple(reached)

    def _reached(self) -> Iterator[ast.AST]:
        makers = [d for d in self._definitions if d.name == self.source.function]
        if line := self.source.line:
            makers = [
                d
                for d in makers
                if line == min(n.lineno for n in (d, *d.decorator_list))
            ]
        else:
            makers = [d for d in makers if d in self.tree.body]
        waiting: list[ast.AST] = [
            node
            for node in self.tree.body
            if not isinstance(node, Definition)
            if not (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))
        ]
        waiting += makers[-1:]
        visited: set[ast.AST] = set()
        while waiting:
            for node in ast.walk(waiting.pop()):
                if node in visited:
                    continue
                visited.add(node)
                yield node
                name = node.id if isinstance(node, ast.Name) else ""
                waiting += [d for d in self._definitions if d.name == name]

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

    def is_true(self, node: ast.expr) -> bool:
        """Whether a value is true, by itself or by a name that stands for no other."""
        if isinstance(node, ast.Name):
            values = [a.value for a, to in self.assignments if dotted(to) == node.id]
            return len(values) == 1 and is_literal(values[0], True)
        return is_literal(node, True)

    @property
    def compile(self) -> ast.Call:
        """The one call that compiles a model."""
        if "compile" in methods_of(*self.of_kind(ast.ClassDef)):
            raise Unsure
        calls = self.calls_of("compile")
        return only([c for c in calls if dotted(receiver(c) or c) not in ("", "re")])

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
            kind, line = key
            method = _METHODS.get(kind, kind.replace(" ", "_"))
            calls = [
                call
                for call in of_kind(ast.Call, self.tree)
                if called_name(call) == method and line_of(call) == line
            ]
            calls.sort(key=self.text.end)
            # A loop may have made several with one call.
            is_sure = len(calls) == keys.count(key)
            yield stage, calls[keys[:place].count(key)] if is_sure else None

    @property
    def tensorflow(self) -> str:
        """What TensorFlow is called there."""
        imports = of_kind(ast.alias, self.tree)
        names = {n.asname or n.name for n in imports if n.name == "tensorflow"}
        return only([*names])


def line_of(node: ast.AST) -> int:
    """Where a reader looks for it: of a call, the line with what is called."""
    line: int | None = getattr(getattr(node, "func", None), "end_lineno", None)
    first: int = getattr(node, "lineno", 1)
    return line or first


def place_of(call: ast.Call, name: str, positions: tuple[str, ...] = ()) -> int | None:
    """Which argument of a call has a name; None where none has."""
    for place, item in enumerate(arguments_of(call)):
        if isinstance(item, ast.Starred):
            positions = ()
        names = (item.arg,) if isinstance(item, ast.keyword) else positions[place:][:1]
        if names == (name,):
            return place
    return None


def value_at(call: ast.Call, place: int) -> ast.expr:
    """What a call gives for an argument, without its name."""
    item = arguments_of(call)[place]
    return item.value if isinstance(item, ast.keyword) else item


# Its text, changed in a few places that its tree finds; all else stays.

# From where to where, in characters of the source, and what goes there instead.
Splice = tuple[int, int, str]
Placed = ast.expr | ast.stmt | ast.keyword
# What may follow in a line that is over, and behind an item's own brackets.
_LINE_TAIL = re.compile(r"[^\S\n]*(#.*)?$", re.MULTILINE)
_CLOSING = re.compile(r"((\s|#.*\n)*\))*")


class Text:
    """The text of a source, whose lines end in a line feed, and what to do to it."""

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
        """The source with all changes, which may not overlap; ``ValueError`` if two do.

        Those at one place are made in the order given.
        """
        parts, position = [], 0
        for start, end, new in sorted(splices, key=lambda splice: splice[0]):
            if start < position:
                raise ValueError("Two changes of one place.")
            parts += [self.source[position:start], new]
            position = end
        return "".join([*parts, self.source[position:]])

    def add(self, call: ast.Call, item: str) -> Iterator[Splice]:
        """One more argument at the end of a call."""
        spans, closed = self._arguments(call), self.end(call) - 1
        if spans:
            yield spans[-1][1], spans[-1][1], f", {item}"
        else:
            yield closed, closed, item

    def replace(self, call: ast.Call, place: int, item: str) -> Iterator[Splice]:
        """Another argument in the place of one."""
        yield *self._arguments(call)[place], item

    def remove(self, call: ast.Call, place: int) -> Iterator[Splice]:
        """Leave an argument out, with its comma."""
        spans, closed = self._arguments(call), self.end(call) - 1
        start, end = spans[place]
        if len(spans) == 1:
            yield self.source.rindex("(", 0, start) + 1, closed, ""
        elif place + 1 < len(spans):
            yield start, spans[place + 1][0], ""
        else:
            yield spans[place - 1][1], end, ""

    def delete(self, statement: ast.stmt, *, alone: bool) -> Iterator[Splice]:
        """Leave a statement out of a body, in which it may be ``alone``."""
        start, end = self.start(statement), self.end(statement)
        before = self.source[:start].rpartition("\n")[2]
        tail = _LINE_TAIL.match(self.source, end)
        if alone:
            yield start, end, "pass"
        elif tail is None or before.strip():
            # It shares its line.
            raise Unsure
        else:
            yield start - len(before), tail.end() + 1, ""

    def call_on(self, call: ast.Call, method: str) -> Iterator[Splice]:
        """Call one more method, such as ``".cache()"``, on what a call gives."""
        yield self.end(call), self.end(call), method

    def _arguments(self, call: ast.Call) -> list[tuple[int, int]]:
        """Where each argument of a call begins and ends, with brackets of its own."""
        closed, spans = self.end(call) - 1, []
        for node in arguments_of(call):
            behind = _CLOSING.match(self.source, self.end(node), closed)
            spans.append((self.start(node), behind.end() if behind else closed))
        return spans

    def _place(self, line: int, column: int) -> int:
        """A column of the tree counts bytes of UTF-8."""
        before = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(before)


def arguments_of(call: ast.Call) -> list[ast.expr | ast.keyword]:
    """The arguments of a call, in the order of the source."""
    nodes: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


# Edits: arguments that are given, and statements that go.


def compile_with(code: Code, name: str, value: str) -> Iterator[Splice]:
    """Give compile an argument."""
    yield from set_argument(code, code.compile, name, value)


def set_argument(
    code: Code, call: ast.Call, name: str, value: str, by_place: tuple[str, ...] = ()
) -> Iterator[Splice]:
    """Give an argument another value, or give it at all."""
    at = place_of(call, name, by_place)
    if at is not None:
        item = value if at < len(call.args) else f"{name}={value}"
        yield from code.text.replace(call, at, item)
    elif hides(call):
        # More may be given than is written there.
        raise Unsure
    else:
        yield from code.text.add(call, f"{name}={value}")


def delete(code: Code, node: ast.AST) -> Iterator[Splice]:
    """Take out the statement that a node is, or that has no other value."""
    statement = node if isinstance(node, ast.stmt) else code.parents[node]
    holder = code.parents.get(statement)
    alone = node in (statement, getattr(statement, "value", None))
    if not isinstance(statement, ast.stmt) or not alone:
        raise Unsure
    bodies = (getattr(holder, field, []) for field in ("body", "orelse", "finalbody"))
    body = only([body for body in bodies if statement in body])
    yield from code.text.delete(statement, alone=len(body) == 1)


# Lines that are shown where no edit of one place does it.


def line_of_compile(code: Code) -> int:
    """The line that compiles the model."""
    return line_of(code.compile)


def line_of_fit(code: Code) -> int:
    """The line of a script that trains it."""
    calls, line = fit_calls(code.tree), code.source.fit
    matches = [call for call in calls if call.lineno == line][:1]
    return line_of(only(matches or calls))


def line_of_definition(code: Code, *paths: str) -> int:
    """The line of the one definition that these name, such as "__main__:Own.step"."""
    names = {path.replace(":", ".").rpartition(".")[2] for path in paths}
    nodes = code.of_kind(Definition)
    return line_of(only([node for node in nodes if node.name in names]))


def line_of_stage(
    about: Callable[[dict[str, Any]], Any] = lambda stage: False,
) -> Callable[[Code], int]:
    """What finds the line of the first stage that a cause is about, or the last one."""

    def line(code: Code) -> int:
        stages = code.pipeline.get("stages", [])
        return code.line_of(([*filter(about, stages)] or stages[-1:])[0])

    return line
