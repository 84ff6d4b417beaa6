"""The lines of what is measured, as a reader types them.

What a panel and a report show beside a variant is read from the source of the functions
that its trials call, so that nothing is shown that was not measured.
"""

import ast
import functools
import inspect
import itertools
import json
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_MORE = inspect.Parameter.VAR_KEYWORD
# Texts in the quotes that the library writes; no shown one has other quotes in it.
_QUOTED = re.compile(r"'([^'\"]*)'")


def code_of(*functions: Callable[..., Any], **values: Any) -> str:
    """The lines of functions that trials call, one after another.

    Left out is what is no part of the work: docstrings, comments, imports, annotations,
    what a trial tells the engine, and a last line that gives back a name. Of a function
    that makes another one and gives it back, the lines of that one are shown.
    Constants, whose names are in capitals, are read as their values. So are the
    arguments of partial functions, and ``values``, in place of ``**options`` as well.
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
        (tree,) = ast.parse(_source(function)).body
    except OSError:
        # An installation without sources has nothing to show.
        return ""
    assert isinstance(tree, ast.FunctionDef)
    constants = {
        name: value
        for name, value in getattr(function, "__globals__", {}).items()
        if name.isupper() and isinstance(value, str | int | float)
    }
    plain = (str, int, float, list)
    given = {name: value for name, value in values.items() if isinstance(value, plain)}
    names = {arg.arg for arg in (*tree.args.args, *tree.args.kwonlyargs)}
    more = [ast.keyword(k, ast.Name(_text(given[k]))) for k in given if k not in names]
    options = {tree.args.kwarg.arg: more} if tree.args.kwarg else {}
    texts = {name: _text(value) for name, value in (constants | given).items()}
    work = _find_work(tree.body)
    return "\n".join(_rewritten(statement, texts, options) for statement in work)


@functools.cache
def _source(function: Callable[..., Any]) -> str:
    return textwrap.dedent(inspect.getsource(function))


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
    elif gives:
        work[-1] = ast.Expr(gives.body if isinstance(gives, ast.Lambda) else gives)
    return work


def _is_idle(node: ast.stmt) -> bool:
    """Whether it is a docstring, an import, or for the engine alone."""
    expr = node.value if isinstance(node, ast.Expr) else None
    is_text = isinstance(expr, ast.Constant) and isinstance(expr.value, str)
    return is_text or _yields(node) or isinstance(node, ast.Import | ast.ImportFrom)


def _yields(node: ast.stmt) -> bool:
    expr = node.value if isinstance(node, ast.Expr) else None
    return isinstance(expr, ast.Yield | ast.YieldFrom)


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str | list) else str(value)


def _rewritten(
    statement: ast.stmt,
    texts: Mapping[str, str],
    options: Mapping[str, list[ast.keyword]],
) -> str:
    """A statement as a reader types it, with texts to be read in place of names."""
    nodes = [*ast.walk(statement)]
    # What a function within yields is its own.
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef))
    inner = {node for function in functions for node in ast.walk(function)}
    for node in nodes:
        if isinstance(body := getattr(node, "body", None), list):
            own = {n for n in body if n in inner and _yields(n)}
            body[:] = [n for n in body if n in own or not _is_idle(n)]
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            node.id = texts.get(node.id, node.id)
        elif isinstance(node, ast.Call):
            more = (options.get(ast.unparse(k.value)) for k in node.keywords)
            pairs = zip(node.keywords, more, strict=True)
            filled = (m if m is not None and not k.arg else [k] for k, m in pairs)
            node.keywords = [*itertools.chain.from_iterable(filled)]
    # Several values stand without brackets.
    giving = (n for n in nodes if isinstance(n, ast.Assign | ast.Return | ast.Yield))
    for node in giving:
        if isinstance(node.value, ast.Tuple):
            node.value = ast.Name(ast.unparse(node.value)[1:-1])
    lines = filter(None, ast.unparse(statement).splitlines())
    return _QUOTED.sub(r'"\1"', "\n".join(lines))
