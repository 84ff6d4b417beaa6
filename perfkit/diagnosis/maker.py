"""Where a training comes from: a function in a notebook, or one in a file."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.errors import BadParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

_MODULE = "perfkit_training"
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


def maker(given: Any) -> Callable[[], Any]:
    """Understand what ``diagnose`` was given: a function, or ``"FILE.py:name"``.

    Raises:
        BadParameterError: It is neither, or there is no such file.
    """
    if isinstance(given, str | Path):
        path, _, name = str(given).rpartition(":")
        if not path or not name.isidentifier():
            path, name = str(given), "make_training"
        return _in_file(Path(path).expanduser(), name)
    if isinstance(given, type) or not callable(given):
        raise BadParameterError(
            f"diagnose() takes a function, such as `{_CONTRACT}`, or "
            f'"FILE.py:make_training", not {type(given).__name__}.'
        )
    function: Callable[[], Any] = given
    return function


def name_of(maker: Callable[[], Any]) -> str:
    """What a reader knows it by; no path, which would name users and hosts."""
    if isinstance(maker, InFile):
        return f"{Path(maker.path).name}:{maker.name}"
    return str(getattr(maker, "__name__", "a function"))


def _in_file(path: Path, name: str) -> InFile:
    if not path.is_file():
        raise BadParameterError(
            f"There is no file {path.name}; give FILE.py:make_training."
        )
    return InFile(str(path.resolve()), name)
