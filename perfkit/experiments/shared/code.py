"""The lines of what is measured, as a reader types them.

What a panel and a report show beside a variant is read from the source of the functions
that its trials call, so that nothing is shown that was not measured.
"""

import ast
import functools
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Edit = tuple[int, int, str]

# Comments are for who reads the package: why it is so, and words to its tools.
_COMMENTS = re.compile(r"^\s*#.*\n|  # .*$", re.MULTILINE)
_EMPTY_LINES = re.compile(r"\n(\s*\n)+")
# What calls a function without an end, and what chooses where a process computes.
_LOOPS, _PLACES = ("repeated", "counted"), ("without_gpus()", "on_one_core()")
_MORE = inspect.Parameter.VAR_KEYWORD


class Name(str):
    """What stands in code as it is: a name, and no text."""

    __slots__ = ()


def code_of(*functions: Callable[..., Any], **given: Any) -> str:
    """The lines of functions that trials call, one after another.

    Left out is what is no part of the work: docstrings, imports, annotations, what a
    trial tells the engine, and a last line that gives back a name. Of a function that
    makes another one and gives it back, the lines of that one are shown. Constants,
    whose names are in capitals, are read as their values.

    Args:
        *functions: Plain functions, or partial ones, whose arguments are filled in.
        **given: Values to be read in place of names, and in place of ``**options``.
    """
    return "\n".join(filter(None, (_lines(each, given) for each in functions)))


def _lines(function: Callable[..., Any], given: Mapping[str, Any]) -> str:
    if isinstance(function, functools.partial):
        signature = inspect.signature(function.func)
        call = signature.bind_partial(*function.args, **function.keywords)
        call.apply_defaults()
        extra = [p.name for p in signature.parameters.values() if p.kind == _MORE]
        more = {k: v for name in extra for k, v in call.arguments.pop(name).items()}
        return _lines(function.func, {**call.arguments, **more, **given})
    try:
        source, made = _parsed(function)
    except OSError:
        # An installation without sources has nothing to show.
        return ""
    shown = _shown(made.body)
    if not shown:
        return ""
    rest = made.body[made.body.index(shown[0]) : made.body.index(shown[-1]) + 1]
    return _Source(source, _constants(function) | _known(made, given)).text(rest)


@functools.cache
def _parsed(function: Callable[..., Any]) -> tuple[str, ast.FunctionDef]:
    source = textwrap.dedent(inspect.getsource(function))
    (made,) = ast.parse(source).body
    assert isinstance(made, ast.FunctionDef)
    return source, made


def _shown(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function that do its work."""
    last = body[-1]
    gives = last.value if isinstance(last, ast.Return) else None
    if isinstance(gives, ast.Name):
        made = (one for one in body if isinstance(one, ast.FunctionDef))
        if itself := [one for one in made if one.name == gives.id]:
            return [*itself]
    shown = [one for one in body if not _is_idle(one)]
    names = gives.elts if isinstance(gives, ast.Tuple) else [gives]
    if all(isinstance(one, ast.Name) for one in names):
        del shown[-1]
    return shown


def _is_idle(node: ast.stmt) -> bool:
    """Whether it is a docstring, an import, or for the engine alone."""
    if not isinstance(node, ast.Expr):
        return isinstance(node, ast.Import | ast.ImportFrom)
    said = node.value
    if isinstance(said, ast.YieldFrom):
        return _repeated(said) is None
    is_text = isinstance(said, ast.Constant) and isinstance(said.value, str)
    return is_text or isinstance(said, ast.Yield) or ast.unparse(said) in _PLACES


def _repeated(node: ast.AST) -> ast.expr | None:
    """What a ``yield from`` calls again and again; None where it is another one."""
    call = node.value if isinstance(node, ast.YieldFrom) else None
    if isinstance(call, ast.Call) and ast.unparse(call.func) in _LOOPS:
        return call.args[0]
    return None


def _constants(function: Callable[..., Any]) -> dict[str, str]:
    """What a function's module calls by names in capitals."""
    names: dict[str, Any] = getattr(function, "__globals__", {})
    return {
        name: _text(value)
        for name, value in names.items()
        if name.isupper() and isinstance(value, str | int | float)
    }


def _known(made: ast.FunctionDef, given: Mapping[str, Any]) -> dict[str, str]:
    """What to read in place of names, and in place of ``**options``."""
    plain = (str, int, float, list)
    values = {name: _text(v) for name, v in given.items() if isinstance(v, plain)}
    if made.args.kwarg:
        own = {arg.arg for arg in (*made.args.args, *made.args.kwonlyargs)}
        more = (f"{name}={v}" for name, v in values.items() if name not in own)
        values[f"**{made.args.kwarg.arg}"] = ", ".join(more)
    return values


def _text(value: Any) -> str:
    is_text = isinstance(value, str | list) and not isinstance(value, Name)
    return json.dumps(value) if is_text else str(value)


class _Source:
    """The source of a function, with values to be read in place of names."""

    def __init__(self, source: str, known: Mapping[str, str]) -> None:
        # The columns of a tree are counted in bytes.
        self._bytes, self._known = source.encode(), known
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def text(self, statements: Sequence[ast.stmt]) -> str:
        """Statements, as they are to be read."""
        at, end = self._line(statements[0]), self._end(statements[-1])
        pieces = []
        edits = (edit for node in statements for edit in self._edits(node))
        for begin, stop, text in sorted(edits):
            # What lies within an edit is not edited again.
            if at <= begin:
                pieces += [self._bytes[at:begin], text.encode()]
                at = stop
        lines = b"".join([*pieces, self._bytes[at:end]]).decode()
        lines = _COMMENTS.sub("", textwrap.dedent(lines))
        return _EMPTY_LINES.sub("\n", lines).strip("\n")

    def _edits(self, statement: ast.stmt) -> Iterator[Edit]:
        if isinstance(statement, ast.Return) and (gives := statement.value):
            itself = gives.body if isinstance(gives, ast.Lambda) else gives
            yield self._at(statement), self._at(itself), ""
        # What a function within yields is its own.
        inside = [f for f in ast.walk(statement) if isinstance(f, ast.FunctionDef)]
        own = {
            node
            for function in inside
            for node in ast.walk(function)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield)
        }
        for node in ast.walk(statement):
            if node not in own and isinstance(node, ast.stmt) and _is_idle(node):
                yield self._line(node), self._end(node) + 1, ""
            elif (again := _repeated(node)) is not None:
                yield self._at(node), self._end(node), self._loop(node, again)
            elif isinstance(node, ast.Name | ast.keyword):
                yield from self._filled_in(node)
            else:
                yield from self._without_annotation(node)

    def _filled_in(self, node: ast.Name | ast.keyword) -> Iterator[Edit]:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id in self._known:
                yield self._at(node), self._end(node), self._known[node.id]
        elif node.arg is None:
            value = self._known.get(f"**{ast.unparse(node.value)}")
            begin = self._at(node)
            if value == "":
                begin = len(self._bytes[:begin].rstrip().removesuffix(b","))
            if value is not None:
                yield begin, self._end(node), value

    def _without_annotation(self, node: ast.AST) -> Iterator[Edit]:
        if isinstance(node, ast.arg) and node.annotation:
            begin, end = self._at(node) + len(node.arg.encode()), self._end(node)
            has_default = self._bytes[end:].startswith(b" = ")
            yield (begin, end + 3, "=") if has_default else (begin, end, "")
        elif isinstance(node, ast.FunctionDef) and node.returns:
            begin = self._bytes.rindex(b" ->", 0, self._at(node.returns))
            yield begin, self._end(node.returns), ""
        elif isinstance(node, ast.AnnAssign):
            yield self._end(node.target), self._end(node.annotation), ""

    def _loop(self, node: Any, again: ast.expr) -> str:
        """What stands for working without an end."""
        called = again.body if isinstance(again, ast.Lambda) else again
        text = self._bytes[self._at(called) : self._end(called)].decode()
        indent = " " * (node.col_offset + 4)
        call = f"{text}()" if called is again else text
        return f"while True:\n{indent}{call}"

    def _line(self, node: Any) -> int:
        nodes = (node, *getattr(node, "decorator_list", ()))
        return self._starts[min(int(one.lineno) for one in nodes) - 1]

    def _at(self, node: Any) -> int:
        return self._starts[int(node.lineno) - 1] + int(node.col_offset)

    def _end(self, node: Any) -> int:
        return self._starts[int(node.end_lineno) - 1] + int(node.end_col_offset)
