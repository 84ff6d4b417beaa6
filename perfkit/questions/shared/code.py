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
_MORE = inspect.Parameter.VAR_KEYWORD


class Name(str):
    """What stands in code as it is: a name, and no text."""

    __slots__ = ()


def code_of(*functions: Callable[..., Any], **values: Any) -> str:
    """The lines of functions that trials call, one after another.

    Left out is what is no part of the work: docstrings, imports, annotations, what a
    trial tells the engine, and a last line that gives back a name. Of a function that
    makes another one and gives it back, the lines of that one are shown. Constants,
    whose names are in capitals, are read as their values.

    Args:
        *functions: Plain functions, or partial ones, whose arguments are filled in.
        **values: Values to be read in place of names, and in place of ``**options``.
    """
    return "\n".join(filter(None, (_lines(function, values) for function in functions)))


def _lines(function: Callable[..., Any], values: Mapping[str, Any]) -> str:
    if isinstance(function, functools.partial):
        signature = inspect.signature(function.func)
        call = signature.bind_partial(*function.args, **function.keywords)
        call.apply_defaults()
        extra = [p.name for p in signature.parameters.values() if p.kind == _MORE]
        options = {k: v for name in extra for k, v in call.arguments.pop(name).items()}
        return _lines(function.func, {**call.arguments, **options, **values})
    try:
        source, tree = _parsed(function)
    except OSError:
        # An installation without sources has nothing to show.
        return ""
    work = _find_work(tree.body)
    if not work:
        return ""
    span = tree.body[tree.body.index(work[0]) : tree.body.index(work[-1]) + 1]
    return _Source(source, _constants(function) | _fill_ins(tree, values)).text(span)


@functools.cache
def _parsed(function: Callable[..., Any]) -> tuple[str, ast.FunctionDef]:
    source = textwrap.dedent(inspect.getsource(function))
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.FunctionDef)
    return source, tree


def _find_work(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a function that do its work."""
    last = body[-1]
    gives = last.value if isinstance(last, ast.Return) else None
    if isinstance(gives, ast.Name):
        functions = (node for node in body if isinstance(node, ast.FunctionDef))
        if itself := [f for f in functions if f.name == gives.id]:
            return [*itself]
    work = [node for node in body if not _is_idle(node)]
    names = gives.elts if isinstance(gives, ast.Tuple) else [gives]
    if all(isinstance(name, ast.Name) for name in names):
        del work[-1]
    return work


def _is_idle(node: ast.stmt) -> bool:
    """Whether it is a docstring, an import, or for the engine alone."""
    if not isinstance(node, ast.Expr):
        return isinstance(node, ast.Import | ast.ImportFrom)
    expr = node.value
    is_text = isinstance(expr, ast.Constant) and isinstance(expr.value, str)
    return is_text or isinstance(expr, ast.Yield | ast.YieldFrom)


def _constants(function: Callable[..., Any]) -> dict[str, str]:
    """What a function's module calls by names in capitals."""
    names: dict[str, Any] = getattr(function, "__globals__", {})
    return {
        name: _text(value)
        for name, value in names.items()
        if name.isupper() and isinstance(value, str | int | float)
    }


def _fill_ins(tree: ast.FunctionDef, values: Mapping[str, Any]) -> dict[str, str]:
    """Return the text to read in place of each name, and of ``**options``."""
    plain = (str, int, float, list)
    texts = {name: _text(v) for name, v in values.items() if isinstance(v, plain)}
    if tree.args.kwarg:
        names = {arg.arg for arg in (*tree.args.args, *tree.args.kwonlyargs)}
        extra = (f"{name}={v}" for name, v in texts.items() if name not in names)
        texts[f"**{tree.args.kwarg.arg}"] = ", ".join(extra)
    return texts


def _text(value: Any) -> str:
    is_text = isinstance(value, str | list) and not isinstance(value, Name)
    return json.dumps(value) if is_text else str(value)


class _Source:
    """The source of a function, with values to be read in place of names."""

    def __init__(self, source: str, texts: Mapping[str, str]) -> None:
        # The columns of a tree are counted in bytes.
        self._bytes, self._texts = source.encode(), texts
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
        inner = {
            node
            for function in inside
            for node in ast.walk(function)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield)
        }
        for node in ast.walk(statement):
            if node not in inner and isinstance(node, ast.stmt) and _is_idle(node):
                yield self._line(node), self._end(node) + 1, ""
            elif isinstance(node, ast.Name | ast.keyword):
                yield from self._filled_in(node)
            else:
                yield from self._without_annotation(node)

    def _filled_in(self, node: ast.Name | ast.keyword) -> Iterator[Edit]:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id in self._texts:
                yield self._at(node), self._end(node), self._texts[node.id]
        elif node.arg is None:
            value = self._texts.get(f"**{ast.unparse(node.value)}")
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

    def _line(self, node: Any) -> int:
        nodes = (node, *getattr(node, "decorator_list", ()))
        return self._starts[min(int(n.lineno) for n in nodes) - 1]

    def _at(self, node: Any) -> int:
        return self._starts[int(node.lineno) - 1] + int(node.col_offset)

    def _end(self, node: Any) -> int:
        return self._starts[int(node.end_lineno) - 1] + int(node.end_col_offset)
