"""Where a training comes from: a function, one in a file, or a script as it is."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.script import Script, script
from perfkit.diagnosis.script_code import parsed
from perfkit.errors import BadParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MODULE = "perfkit_training"
_FUNCTION = "make_training"
_CONTRACT = "def make_training(): return model, dataset"


@dataclass(frozen=True)
class InFile:
    """A function in a file, found there anew in each process.

    Attributes:
        path: Of the file, from the root.
        name: Of the function.
    """

    path: str
    name: str

    def __call__(self) -> Any:
        """Run the file and call its function."""
        return self.function()()

    def function(self) -> Callable[[], Any]:
        """Run the file, as ``import`` would, and take its function."""
        folder = str(Path(self.path).parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        spec = importlib.util.spec_from_file_location(_MODULE, self.path)
        if spec is None or spec.loader is None:
            raise BadParameterError(f"{Path(self.path).name} is no file of Python.")
        module = importlib.util.module_from_spec(spec)
        sys.modules[_MODULE] = module
        spec.loader.exec_module(module)
        try:
            found: Callable[[], Any] = getattr(module, self.name)
        except AttributeError:
            raise BadParameterError(
                f"{Path(self.path).name} has no function {self.name}; "
                f"it needs one such as `{_CONTRACT}`."
            ) from None
        return found


def maker(given: Any, arguments: Sequence[str] = (), fit: int = 0) -> Callable[[], Any]:
    """Understand what ``diagnose`` was given.

    Args:
        given: A function, ``"FILE.py:name"``, or ``"FILE.py"``, whose function
            ``make_training`` is taken if it has one; else it is a script as it is.
        arguments: Of a script.
        fit: Which call of ``fit`` to take in a script, from 1; 0 for the longest.

    Raises:
        BadParameterError: It is none of these, there is no such file, or it trains
            nothing.
    """
    if isinstance(given, str | Path):
        return _in_file(str(given), tuple(arguments), fit)
    if isinstance(given, type) or not callable(given):
        raise BadParameterError(
            f"diagnose() takes a function, such as `{_CONTRACT}`, or a script, such as "
            f'"train.py", not {type(given).__name__}.'
        )
    function: Callable[[], Any] = given
    return function


def contain(maker: Callable[[], Any], *keep: str) -> None:
    """Keep what a script writes, but for these folders, within this process.

    It has no other thread yet.
    """
    if isinstance(maker, Script):
        maker.contain(keep)


def name_of(maker: Callable[[], Any]) -> str:
    """What a reader knows it by; no path, which would name users and hosts."""
    if isinstance(maker, InFile):
        return f"{Path(maker.path).name}:{maker.name}"
    if isinstance(maker, Script):
        return Path(maker.path).name
    return str(getattr(maker, "__name__", "a function"))


def _in_file(given: str, arguments: tuple[str, ...], fit: int) -> InFile | Script:
    path, _, name = given.rpartition(":")
    if not path or not name.isidentifier():
        path, name = given, ""
    file = Path(path).expanduser()
    if not file.is_file():
        raise BadParameterError(
            f"There is no file {file.name}; give train.py, or FILE.py:make_training."
        )
    file = file.resolve()
    if name or _has(file, _FUNCTION):
        return InFile(str(file), name or _FUNCTION)
    return script(file, arguments, fit)


def _has(file: Path, name: str) -> bool:
    """Whether a file makes a name of its own, as far as can be read."""
    with contextlib.suppress(SyntaxError, ValueError, RecursionError):
        for node in parsed(str(file)).body:
            given = {getattr(to, "id", "") for to in getattr(node, "targets", ())}
            if name in given | {getattr(node, "name", "")}:
                return True
    return False
