"""Where the code of a training stands: in a file or in a cell."""

from __future__ import annotations

import ast
import hashlib
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis import script_code
from perfkit.diagnosis.maker import InFile
from perfkit.diagnosis.script import Script

if TYPE_CHECKING:
    from collections.abc import Callable

# What reading and parsing code that cannot be read ends in.
UNREADABLE = (
    *(OSError, TypeError, SyntaxError, ValueError),
    *(RecursionError, MemoryError),
)
# Beyond this, some 2,000 lines, a file is no training that somebody wrote.
_LONGEST = 80_000


@dataclass(frozen=True)
class Source:
    """The code of a training, and where it stands.

    Attributes:
        text: All of the file or the cell.
        path: Of the file; "" for a cell that was run.
        function: That makes the training; "" for a script.
        line: Where the function begins; 0 for the one outside of all others.
        fit: Which of a script's calls of ``fit`` is taken, from 0; -1 for the only one.
        cells: Of a notebook: the lines in which its cells of code begin.
    """

    text: str
    path: str = ""
    function: str = ""
    line: int = 0
    fit: int = -1
    cells: tuple[int, ...] = ()

    def place(self, line: int) -> tuple[int, int]:
        """Which cell a line stands in, from 1, and which line it is there.

        Without cells that is 0 and the line itself.
        """
        before = [start for start in self.cells if start <= line]
        return len(before), line - before[-1] + 1 if before else line


def source_of(maker: Callable[[], Any]) -> Source:
    """Read the code of a training.

    Raises:
        OSError: There is no source, or more of it than anybody wrote.
        TypeError: It is no function of Python.
        SyntaxError: The file is no Python, or has an encoding that Python cannot read.
        ValueError: It is no notebook, or has no such call of ``fit``.
    """
    if isinstance(maker, InFile):
        return Source(_read(maker.path), maker.path, maker.name)
    if isinstance(maker, Script):
        text = _read(maker.path)
        fits = script_code.fit_calls(tree := ast.parse(text))
        lines, taken = [call.lineno for call in fits], maker.line_of_fit(tree)
        fit = lines.index(taken) if taken in lines else -1
        return Source(text, maker.path, fit=fit, cells=script_code.cells(maker.path))
    function = inspect.unwrap(maker)
    code = getattr(function, "__code__", None)
    if code is None:
        raise TypeError("It has no code of Python.")
    text = "".join(inspect.findsource(function)[0])
    if len(text) > _LONGEST:
        raise OSError("The cell is too long to be read for hints.")
    file = inspect.getsourcefile(function) or ""
    path = file if Path(file).is_file() else ""
    return Source(text, path, function.__name__, code.co_firstlineno)


def digest(maker: Callable[[], Any]) -> str:
    """Tell the code around a function from any other; "" where it cannot be read.

    Comments and the layout of lines are no part of it; what a script is given is.
    """
    try:
        code = ast.unparse(ast.parse(source_of(maker).text))
    except UNREADABLE:
        return ""
    if isinstance(maker, Script):
        code += repr((maker.arguments, maker.fit))
    return hashlib.sha256(code.encode()).hexdigest()


def _read(path: str) -> str:
    if Path(path).stat().st_size > _LONGEST:
        raise OSError("The file is too long to be read for hints.")
    return script_code.source(path)
