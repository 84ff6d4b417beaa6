"""Edits of a training's code: arguments that are given, and statements that go."""

import ast
from collections.abc import Callable, Iterator
from typing import Any

from perfkit.training.diagnose.code import (
    FIT_ARGUMENTS,
    Code,
    Splice,
    Unsure,
    line_of,
    only,
    place_of,
    require,
)
from perfkit.training.diagnose.source import Function, hides, is_literal

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
