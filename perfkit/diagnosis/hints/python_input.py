"""Python that makes the examples, one by one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.names import Function, called, dotted, keyword

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.hints.code import Code, Hinted

PYTHON = {"py_function", "numpy_function"}
_DATASETS = ("PyDataset", "Sequence")
_REPEATS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.DictComp)
# What reads a file for each item.
_READS = {"open", "imread", "load_img", "read_bytes", "read_text", "load", "loadtxt"}


def hinted(code: Code) -> Iterator[Hinted]:
    """What runs Python where TensorFlow could work by itself."""
    for call in code.calls:
        if called(call) in PYTHON and dotted(call.func).startswith(("tf.", "tensorf")):
            says = (
                f"{called(call)} runs Python for each element, one at a time, however "
                "many calls are parallel; write it with operations of TensorFlow."
            )
            yield call, says
        if called(call) == "from_generator" and _works(code, call):
            says = (
                "This generator works in Python for each example, one at a time; yield "
                "what is cheap to find, and map the work in TensorFlow."
            )
            yield call, says
    for call, chain in code.chains.listed.items():
        if not {"take", "?"} & {one.name for one in chain}:
            says = (
                "list() makes the whole dataset at once and keeps it in memory; loop "
                "over it, or take() a few; cardinality() tells its length."
            )
            yield call, says
    for one in code.classes:
        yield from _dataset(code, one)


def _works(code: Code, call: ast.Call) -> bool:
    """Whether a generator does more than hand over what there is."""
    function = code.resolve(keyword(call, "generator", 0))
    if not isinstance(function, Function):
        return False
    loops = [one for one in ast.walk(function) if isinstance(one, ast.For | ast.While)]
    return any(_computes(part) for loop in loops for part in loop.body)


def _computes(part: ast.AST) -> bool:
    return isinstance(part, ast.For) or any(
        isinstance(one, ast.Call) for one in ast.walk(part)
    )


def _dataset(code: Code, one: ast.ClassDef) -> Iterator[Hinted]:
    if not any(called(base) in _DATASETS for base in one.bases):
        return
    item = next((f for f in one.body if getattr(f, "name", "") == "__getitem__"), None)
    workers = any(k.arg == "workers" for call in code.calls for k in call.keywords)
    made = [c for c in code.calls if called(c) == one.name]
    hidden = any(k.arg is None for call in made for k in call.keywords)
    if item and not workers and not hidden and _is_dear(item):
        says = (
            "This dataset works in Python for each batch, in one worker; do the work "
            "for all rows beforehand, or give super().__init__() more workers."
        )
        yield one, says


def _is_dear(item: ast.AST) -> bool:
    return any(
        isinstance(node, _REPEATS)
        or (isinstance(node, ast.Call) and called(node) in _READS)
        for node in ast.walk(item)
    )
