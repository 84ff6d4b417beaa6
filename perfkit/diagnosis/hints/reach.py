"""Which part of source code can run when one of its functions is called."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.names import Definition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.hints.names import Names


def asked(tree: ast.Module, name: str, line: int) -> ast.AST | None:
    """The definition of a name: the one that begins in a line, or the last outermost.

    Args:
        tree: All of the code.
        name: Of the function.
        line: Where it begins, with its decorators; 0 for the last outside of all.
    """
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, Definition) and node.name == name
        if (_first_line(node) == line if line else node in tree.body)
    ]
    return found[-1] if found else None


def reached(tree: ast.Module, names: Names, first: ast.AST | None) -> Iterator[ast.AST]:
    """What stands outside of definitions, the one asked for, and all that they name."""
    waiting = [
        node
        for node in tree.body
        if not isinstance(node, Definition) and not _is_main(node)
    ]
    found: list[ast.AST] = [*waiting, *([first] if first else [])]
    seen: set[ast.AST] = set()
    while found:
        for node in ast.walk(found.pop()):
            if node not in seen:
                seen.add(node)
                yield node
                found += _defined(names, node)


def _defined(names: Names, node: ast.AST) -> list[ast.AST]:
    if not isinstance(node, ast.Name):
        return []
    return [one for one in names.lookup(node) if isinstance(one, Definition)]


def _first_line(node: Definition) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _is_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
