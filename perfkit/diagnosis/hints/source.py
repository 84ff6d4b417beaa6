"""Where the code of a training stands: in a file or in a cell."""

from __future__ import annotations

import ast
import hashlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis import script, script_code
from perfkit.diagnosis.maker import InFile

if TYPE_CHECKING:
    from collections.abc import Callable

# What reading and parsing code that cannot be read ends in.
UNREADABLE = (
    *(OSError, TypeError, SyntaxError, ValueError),
    *(RecursionError, MemoryError),
)
# Beyond this, some 2,000 lines, a file is no training that somebody wrote.
_LONGEST = 80_000


def source_of(maker: Callable[[], Any]) -> tuple[str, str, int]:
    """The source around a function, its name, and the line it begins in.

    The line is 0 for a function that a file is asked for by name.

    Raises:
        OSError: There is no source, or more of it than anybody wrote.
        TypeError: It is no function of Python.
        SyntaxError: The file has no encoding that it says, or that Python reads.
    """
    if isinstance(maker, InFile):
        return _read(maker.path), maker.name, 0
    if isinstance(maker, script.Script):
        return _read(maker.path), "", 0
    function = inspect.unwrap(maker)
    line = _code(function).co_firstlineno
    return _fitting("".join(inspect.findsource(function)[0])), function.__name__, line


def digest(maker: Callable[[], Any]) -> str:
    """Tell the code around a function from any other; "" where it cannot be read.

    Comments and the layout of lines are no part of it; what a script is given is.
    """
    try:
        code = ast.unparse(ast.parse(source_of(maker)[0]))
    except UNREADABLE:
        return ""
    if isinstance(maker, script.Script):
        code += repr((maker.arguments, maker.fit))
    return hashlib.sha256(code.encode()).hexdigest()


def _read(path: str) -> str:
    if Path(path).stat().st_size > _LONGEST:
        raise OSError("The file is too long to be read for hints.")
    return script_code.source(path)


def _fitting(source: str) -> str:
    if len(source) > _LONGEST:
        raise OSError("The cell is too long to be read for hints.")
    return source


def _code(function: Any) -> Any:
    try:
        return function.__code__
    except AttributeError:
        raise TypeError("It has no code of Python.") from None
