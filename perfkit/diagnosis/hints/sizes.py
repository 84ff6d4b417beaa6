"""How many examples source code makes, as far as a number stands there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.names import called, dotted, keyword

if TYPE_CHECKING:
    from perfkit.diagnosis.hints.code import Code
    from perfkit.diagnosis.hints.known import Chain

# The functions that make an array, and where each takes its shape.
_SHAPED = {
    **{"zeros": 0, "ones": 0, "empty": 0, "random": 0, "random_sample": 0},
    **{"standard_normal": 0, "normal": 2, "uniform": 2, "integers": 2, "randint": 2},
}
_SAME = {"astype", "copy"}


def examples(code: Code, chain: Chain) -> int | None:
    """The number of examples that a pipeline starts from; None where none is seen."""
    if any(one.name not in ("from_tensor_slices", "cache", "map") for one in chain):
        return None
    source = chain[0].call if chain else None
    shape = shape_of(code, _first_array(code, source)) if source else None
    return shape[0] if shape else None


def is_unbatched(code: Code, chain: Chain) -> bool:
    """Whether a pipeline hands over single examples, as far as its source shows."""
    source = chain[0].call
    if chain[0].name != "from_tensor_slices" or not source:
        return False
    array = _first_array(code, source)
    if _is_loaded(code, array):
        return True
    shape, takes = shape_of(code, array), _input(code)
    return shape is not None and takes is not None and len(shape) == len(takes.elts) + 1


def shape_of(code: Code, node: ast.AST | None) -> tuple[int, ...] | None:
    """The shape of an array whose sizes are numbers in the code."""
    found = code.resolve(node)
    if not isinstance(found, ast.Call):
        return None
    if called(found) in _SAME and isinstance(found.func, ast.Attribute):
        return shape_of(code, found.func.value)
    place = _SHAPED.get(called(found))
    if place is None:
        return None
    shape = keyword(found, "size") or keyword(found, "shape") or _at(found, place)
    sizes = [code.number(one) for one in getattr(code.resolve(shape), "elts", [shape])]
    return None if None in sizes else tuple(int(one or 0) for one in sizes)


def _at(call: ast.Call, place: int) -> ast.expr | None:
    return call.args[place] if len(call.args) > place else None


def _first_array(code: Code, source: ast.Call) -> ast.AST | None:
    given = code.resolve(source.args[0]) if source.args else None
    if isinstance(given, ast.Tuple | ast.List):
        given = given.elts[0] if given.elts else None
    return given


def _is_loaded(code: Code, node: ast.AST | None) -> bool:
    """Whether an array comes from ``keras.datasets`` and is scaled at most."""
    if isinstance(node, ast.BinOp):
        return _is_loaded(code, node.left)
    if isinstance(node, ast.Call) and called(node) in _SAME:
        return _is_loaded(code, getattr(node.func, "value", None))
    bound = code.names.lookup(node) if isinstance(node, ast.Name) else []
    if not isinstance(node, ast.Name) or not bound:
        return False
    return any(_unpacks_loaded(code, one) for one in bound) and all(
        isinstance(one, ast.AugAssign)
        or _unpacks_loaded(code, one)
        or _scales(one, node.id)
        for one in bound
    )


def _unpacks_loaded(code: Code, target: ast.AST) -> bool:
    above = next(
        (o for o in code.names.above(target) if isinstance(o, ast.Assign)), None
    )
    value = above.value if above else None
    return isinstance(value, ast.Call) and dotted(value.func).endswith(".load_data")


def _scales(value: ast.AST, name: str) -> bool:
    """Whether a value is the name's own, in another type or range."""
    while isinstance(value, ast.BinOp | ast.Call):
        if isinstance(value, ast.BinOp):
            value = value.left
        elif called(value) in _SAME and isinstance(value.func, ast.Attribute):
            value = value.func.value
        else:
            return False
    return isinstance(value, ast.Name) and value.id == name


def _input(code: Code) -> ast.Tuple | None:
    """The shape of the one input of a model, where it is written as a tuple."""
    found = [one for one in code.calls if called(one) in ("Input", "InputLayer")]
    shape = keyword(found[0], "shape", 0) if len(found) == 1 else None
    value = code.resolve(shape)
    return value if isinstance(value, ast.Tuple) else None
