"""What a function does in Python, and what a graph of it would therefore do only once.

Run eagerly it draws anew and counts on in each step. Traced, it keeps the number that
was drawn and the state that was seen then, and nothing fails.
"""

import ast
from collections.abc import Iterable, Iterator

from perfkit.diagnosis.edits.places import Unsure
from perfkit.diagnosis.hints.code import Code
from perfkit.diagnosis.hints.pipelines import python_draws
from perfkit.diagnosis.source import (
    Function,
    called,
    dotted,
    names_in,
    of_kind,
    receiver,
)

_DRAWN = (
    "In a graph `{}` of `{}` draws once, and every step gets the same: draw with "
    "tf.random first, or hand the number in as a tensor."
)
_SET = (
    "In a graph `{}` of `{}` is set once, and no step changes it again: make it a "
    "tf.Variable first, or set it outside."
)
_READ = "In a graph `{}` of `{}` keeps its first value: hand it in as a tensor first."
# What Keras makes graphs of, where it is the user's own.
_METHODS = ("train_step", "call", "compute_loss", "update_state")


def refuse_frozen(code: Code, functions: Iterable[ast.AST]) -> None:
    """Find nothing that these functions, and those that they call, would do once.

    Raises:
        Unsure: They would; it says what, and what to do about it.
    """
    for function in _reached(code, functions):
        for says, what in _frozen(code, function):
            name = getattr(function, "name", "lambda")
            raise Unsure(says.format(what, name))


def methods(code: Code) -> list[Function]:
    """What Keras calls in each step: methods by their names, and what it was given."""
    names = {*_METHODS, *names_in(*code.named("compile"))}
    return [one for one in code.functions if getattr(one, "name", "") in names]


def _reached(code: Code, functions: Iterable[ast.AST]) -> Iterator[Function]:
    """These functions, and those of the same file and class that they call."""
    waiting, seen = [*functions], set[ast.AST]()
    while waiting:
        function = waiting.pop(0)
        if not isinstance(function, Function) or function in seen:
            continue
        seen.add(function)
        yield function
        kind = code.names.nearest(function, ast.ClassDef)
        own = {getattr(f, "name", ""): f for f in kind.body} if kind else {}
        for call in of_kind(ast.Call, function):
            of = receiver(call)
            if of is None:
                waiting.append(code.resolve(call.func) or call)
            elif dotted(of) == "self" and called(call) in own:
                waiting.append(own[called(call)])


def _frozen(code: Code, function: Function) -> Iterator[tuple[str, str]]:
    """What a graph of a function does once: what to say, and of what."""
    for call in python_draws(code, [*of_kind(ast.Call, function)]):
        yield _DRAWN, ast.unparse(call.func)
    for node in of_kind(ast.Attribute, function):
        if isinstance(node.ctx, ast.Store):
            yield _SET, ast.unparse(node)
    for statement in ast.walk(function):
        if isinstance(statement, ast.Global | ast.Nonlocal):
            yield _SET, statement.names[0]
    for name in of_kind(ast.Name, function):
        if any(_changes_outside(code, one, function) for one in code.bound(name)):
            yield _READ, name.id


def _changes_outside(code: Code, bound: ast.AST, function: Function) -> bool:
    """Whether a loop elsewhere gives a name one value after the other."""
    counted = isinstance(bound, ast.AugAssign) and code.loop_of(bound) is not None
    moves = counted or isinstance(bound, ast.For | ast.AsyncFor)
    return moves and function not in code.names.above(bound)
