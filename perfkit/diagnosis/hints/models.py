"""Which names in source code are models of Keras."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.names import called, dotted

if TYPE_CHECKING:
    from perfkit.diagnosis.hints.code import Code

MAKES = {"Sequential", "Model", "load_model", "clone_model"}


def is_model(code: Code, node: ast.AST) -> bool:
    """Whether a name was given a model, or is called one and was given nothing else."""
    name = dotted(node)
    found = code.resolve(node)
    if isinstance(found, ast.Call):
        return makes_model(code, found)
    return found is None and name.split(".")[-1].lower() in ("model", "net", "network")


def makes_model(code: Code, call: ast.Call) -> bool:
    """Whether a call makes a model, by itself or in a function of the same file."""
    if called(call) in MAKES:
        return True
    function = code.resolve(call.func) if isinstance(call.func, ast.Name) else None
    if not isinstance(function, ast.FunctionDef):
        return False
    return any(
        _returns_model(code, one)
        for one in ast.walk(function)
        if isinstance(one, ast.Return)
    )


def _returns_model(code: Code, node: ast.Return) -> bool:
    found = code.resolve(node.value)
    return isinstance(found, ast.Call) and called(found) in MAKES
