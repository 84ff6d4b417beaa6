"""Some names are a package and a verb, such as ``perfkit.findings()``.

Importing any part of a package binds its name in ``perfkit``, over a function of the
same name. So these packages can be called themselves.
"""

import importlib
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from perfkit.errors import need


class Verb(ModuleType):
    """A package that does what its name says when it is called."""

    _home: str
    _needs: str

    @property
    def _function(self) -> Callable[..., Any]:
        if self._needs:
            need(self._needs, f"{self.__name__}()", "lab")
        home = importlib.import_module(self._home)
        function: Callable[..., Any] = getattr(home, self.__name__.rpartition(".")[2])
        return function

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._function)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Do it."""
        return self._function(*args, **keywords)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        # Picklers know plain modules by their exact type.
        return importlib.import_module, (self.__name__,)


def make_callable(package: str, home: str, needs: str = "") -> None:
    """Let calling ``package`` call the function of its name in the module ``home``.

    Args:
        package: By its whole name.
        home: Imported when it is first called.
        needs: A module of the extra "lab" without which ``home`` cannot be imported.
    """
    module = importlib.import_module(package)
    module.__class__ = Verb
    module._home, module._needs = home, needs  # type: ignore[attr-defined]
