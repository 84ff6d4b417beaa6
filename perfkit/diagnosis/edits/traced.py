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
    FITS,
    LOOPS,
    Function,
    Import,
    called,
    dotted,
    keyword,
    names_in,
    of_kind,
    parameters,
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
_READ = (
    "In a graph `{}` of `{}` keeps its first value: hand it in as a tensor first, or "
    "make the graph anew where it changes."
)
_TAKEN = (
    "In a graph `{}` of `{}` is taken once, unless it is of tf.data: take it outside, "
    "and hand it in."
)
_ONE = (
    "In a graph `{}` of `{}` has to stay the same, since an optimizer makes its "
    "variables once: make the graph anew where it changes."
)
_UPDATES = ("apply", "apply_gradients")
# Where an object gets what it has.
_MAKES = ("__init__", "build", "compile")
_DEEPEST = 8
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
            elif dotted(of) != "self" and not _is_module(code, of):
                # Of whichever class of the file has such a method.
                kinds = (f for one in code.classes for f in one.body)
                waiting += [f for f in kinds if getattr(f, "name", "") == called(call)]


def _frozen(code: Code, function: Function) -> Iterator[tuple[str, str]]:
    """What a graph of a function does once: what to say, and of what."""
    for call in python_draws(code, [*of_kind(ast.Call, function)]):
        yield _DRAWN, ast.unparse(call.func)
    for call in of_kind(ast.Call, function):
        # A search through what is there finds the same each time.
        searched = any(isinstance(one, ast.GeneratorExp) for one in call.args[:1])
        if dotted(call.func) == "next" and not searched:
            yield _TAKEN, ast.unparse(call)
    kinds = _kinds(code, code.names.nearest(function, ast.ClassDef))
    later = {
        node.attr
        for node in code.nodes
        if isinstance(node, ast.Attribute) and _sets_later(code, node, kinds)
    }
    for node in of_kind(ast.Attribute, function):
        reads = isinstance(node.ctx, ast.Load) and dotted(node.value) == "self"
        if reads and node.attr in later:
            yield _READ, ast.unparse(node)
    for node in of_kind(ast.Attribute, function):
        if isinstance(node.ctx, ast.Store):
            yield _SET, ast.unparse(node)
    for statement in ast.walk(function):
        if isinstance(statement, ast.Global | ast.Nonlocal):
            yield _SET, statement.names[0]
    shared = {
        name
        for node in code.nodes
        if isinstance(node, ast.Global)
        if not _makes(code, code.names.nearest(node, ast.FunctionDef))
        for name in node.names
    }
    for name in of_kind(ast.Name, function):
        local = any(function in code.names.above(b) for b in code.bound(name))
        if name.id in shared and isinstance(name.ctx, ast.Load) and not local:
            yield _READ, name.id
        if any(_changes_outside(code, one, function) for one in code.bound(name)):
            yield _READ, name.id
    updates = (c for c in of_kind(ast.Call, function) if called(c) in _UPDATES)
    updating = {dotted(of).partition(".")[0] for of in map(receiver, updates) if of}
    for parameter in parameters(function):
        if parameter.arg in updating and _has_several(code, function, parameter):
            yield _ONE, parameter.arg


def _has_several(
    code: Code, function: Function, parameter: ast.arg, deep: int = 0
) -> bool:
    """Whether a parameter is given one object after the other."""
    place, calls = parameters(function).index(parameter), code.calls_of(function)
    given = [keyword(call, parameter.arg, place) for call in calls]
    made = {bound for one in given if one for bound in code.bound(one)}
    made.update(one for one in given if isinstance(one, ast.Call))
    handed = [one for one in made if isinstance(one, ast.arg)]
    if len(calls) > 1 and len(made) > 1:
        return True
    if any(isinstance(o, LOOPS) or code.runs_again(o) for o in made.difference(handed)):
        return True
    outer = [(code.names.function_of(one), one) for one in handed]
    return deep < _DEEPEST and any(
        _has_several(code, of, one, deep + 1)
        for of, one in outer
        if of and one in parameters(of)
    )


def _changes_outside(code: Code, bound: ast.AST, function: Function) -> bool:
    """Whether a loop elsewhere gives a name one value after the other."""
    above = [bound, *code.names.above(bound)]
    statement = next((one for one in above if isinstance(one, ast.stmt)), bound)
    given = isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign)
    loop = code.loop_of(statement) if given else None
    if isinstance(bound, ast.For | ast.AsyncFor):
        loop = bound
    # What is defined in the loop is made anew in each of its turns.
    moves = loop is not None and loop not in code.names.above(function)
    return moves and function not in above


def _kinds(code: Code, kind: ast.ClassDef | None) -> list[ast.ClassDef | None]:
    """A class, and those of the file that it is made from; None for no class."""
    found = [kind]
    # More are added while they are gone through.
    for one in found:
        bases = {called(base) for base in one.bases} if one else set()
        found += [of for of in code.classes if of.name in bases and of not in found]
    return found


def _sets_later(
    code: Code, node: ast.Attribute, kinds: list[ast.ClassDef | None]
) -> bool:
    """Whether it sets an attribute of an object of these classes once that is made."""
    of_another = code.names.nearest(node, ast.ClassDef) not in kinds
    if not isinstance(node.ctx, ast.Store) or (
        dotted(node.value) == "self" and of_another
    ):
        return False
    within = code.names.nearest(node, ast.FunctionDef)
    if within is None:
        return code.loop_of(node) is not None
    return not _makes(code, within)


def _makes(code: Code, function: ast.FunctionDef | None) -> bool:
    """Whether a function makes an object, or is called once before there are steps."""
    if function is None or function.name in _MAKES:
        return function is not None
    calls = [*code.named(function.name)]
    callers = [(code.names.nearest(one, ast.FunctionDef), one) for one in calls]
    return bool(calls) and all(
        within.name in _MAKES if within else not _has_begun(code, call)
        for within, call in callers
    )


def _has_begun(code: Code, call: ast.Call) -> bool:
    """Whether a loop or ``fit`` outside of functions begins before a call."""
    trains = [*code.named(*FITS), *(n for n in code.nodes if isinstance(n, LOOPS))]
    first = (o.lineno for o in trains if not code.names.nearest(o, ast.FunctionDef))
    return call.lineno > min(first, default=call.lineno)


def _is_module(code: Code, node: ast.expr) -> bool:
    """Whether what a function is taken from is a module, or a part of one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return any(isinstance(one, Import) for one in code.bound(node))
