"""What a function does in Python, and what a graph of it would therefore do only once.

Run eagerly it draws anew and counts on in each step. Traced, it keeps the number that
was drawn and the state that was seen then, and nothing fails. Whatever may be such a
thing is refused.
"""

import ast
from collections.abc import Iterable, Iterator

from perfkit.diagnosis.edits.code import Code, Unsure
from perfkit.diagnosis.source import (
    LOOPS,
    Definition,
    Function,
    Import,
    called,
    dotted,
    names_in,
    of_kind,
    receiver,
)

_ONCE = (
    "In a graph `{}` of `{}` is read, drawn or set only once: hand it in as a tensor, "
    "or keep it in a tf.Variable, first."
)
_OPTIMIZER = (
    "In a graph `{}` of `{}` has to stay the same, since an optimizer makes its "
    "variables once: make the graph anew where it changes."
)
_DRAWS = ("np.random.", "numpy.random.", "random.")
_UPDATES = ("apply", "apply_gradients")
# Where an object gets its attributes.
_MAKES = ("__init__", "build", "compile")
# What Keras makes graphs of, where it is the user's own.
_METHODS = ("train_step", "call", "compute_loss", "update_state")


def refuse_frozen(code: Code, functions: Iterable[ast.AST]) -> None:
    """Check that these functions, and those that they call, do nothing only once.

    Raises:
        Unsure: They would; it says what, and what to do about it.
    """
    changing = _changing(code)
    for function in _reached(code, functions):
        for sentence, what in _frozen(code, function, changing):
            name = getattr(function, "name", "lambda")
            raise Unsure(sentence.format(what, name))


def traced(code: Code) -> list[Function]:
    """What graphs are made of: what Keras calls in each step, and under tf.function."""
    names = {*_METHODS, *names_in(*code.calls_of("compile"))}
    return [
        one
        for one in code.functions
        if getattr(one, "name", "") in names
        or any(
            "tf.function" in ast.unparse(d) or called(d) == "function"
            for d in getattr(one, "decorator_list", ())
        )
    ]


def _reached(code: Code, functions: Iterable[ast.AST]) -> Iterator[Function]:
    """These functions, and all of the same file that have the names that they call."""
    waiting, seen = [*functions], set[ast.AST]()
    while waiting:
        function = waiting.pop(0)
        if isinstance(function, Function) and function not in seen:
            seen.add(function)
            yield function
            names = {called(call) for call in of_kind(ast.Call, function)}
            waiting += [o for o in code.functions if getattr(o, "name", "") in names]


def _changing(code: Code) -> set[str]:
    """Names and attributes that get another value once a training has begun."""
    names = {n for one in of_kind(ast.Global, code.tree) for n in one.names}
    for node in of_kind(ast.Attribute, code.tree):
        within = code.names.nearest(node, ast.FunctionDef)
        if isinstance(node.ctx, ast.Store) and (
            not within or within.name not in _MAKES
        ):
            names.add(f"self.{node.attr}")
    return names


def _frozen(
    code: Code, function: Function, changing: set[str]
) -> Iterator[tuple[str, str]]:
    generators = {
        called(target)
        for node, target in code.assignments
        if isinstance(node.value, ast.Call) and _draws(code, node.value)
    }
    for call in of_kind(ast.Call, function):
        whole, of = dotted(call.func), receiver(call)
        if _draws(code, call) or called(of or call) in generators or whole == "next":
            yield _ONCE, ast.unparse(call.func)
        given = code.bindings(of) if of and called(call) in _UPDATES else []
        if any(isinstance(one, ast.arg) for one in given):
            yield _OPTIMIZER, whole.rpartition(".")[0]
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Store) or dotted(node) in changing:
                yield _ONCE, ast.unparse(node)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            yield _ONCE, node.names[0]
        elif isinstance(node, ast.Name) and _moves(code, node, function, changing):
            yield _ONCE, node.id


def _draws(code: Code, call: ast.Call) -> bool:
    """Whether a call draws in Python, by the name of its module."""
    modules = (getattr(one, "module", "") for one in code.bindings(call.func))
    named = any(f"{module}.".startswith(_DRAWS) for module in modules if module)
    return named or dotted(call.func).startswith(_DRAWS)


def _moves(code: Code, name: ast.Name, function: Function, changing: set[str]) -> bool:
    """Whether a name from outside of a function has one value after the other."""
    bound = [o for o in code.bindings(name) if not isinstance(o, Import | Definition)]
    inside = any(function in code.names.above(one) for one in bound)
    if inside or isinstance(name.ctx, ast.Store):
        return False
    loops = (
        isinstance(o, LOOPS) for one in bound for o in (one, *code.names.above(one))
    )
    return name.id in changing or len(bound) > 1 or any(loops)
