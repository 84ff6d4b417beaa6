"""The questions, one file each; ``base`` is the contract.

A new file in this folder with one named ``Experiment`` in it is found by listing the
folder: nothing else has to know about it.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import logging
import os
import pkgutil
import traceback
from typing import TYPE_CHECKING, Any

from perfkit.errors import BadParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from perfkit.experiments.base import Experiment

__all__ = ["experiment", "experiments"]

# What experiments are made of; importing the last would load the engine for a list.
_CONTRACT = {"base", "parameters", "session"}


def experiments() -> dict[str, type[Experiment]]:
    """List every experiment of this installation, by name.

    A file with a fault is left out and told on stderr, with the line that it is in.

    Its question is the first line of the class's docstring, its parameters are the
    class's fields.
    """
    found: dict[str, type[Experiment]] = {}
    for kind in _kinds():
        if found.setdefault(kind.name, kind) is not kind:
            file = kind.__module__.rpartition(".")[2]
            _tell(file, _line_of(kind), f"another file has the name {kind.name!r}")
    return dict(sorted(found.items()))


def experiment(name: str, /, **parameters: Any) -> Experiment:
    """Make one experiment by its name; every parameter has a default.

    Raises:
        BadParameterError: No experiment or parameter has that name, or a value is
            outside what the parameter accepts.
    """
    from perfkit.experiments.parameters import parameters_of

    kind = named(name)
    known = [parameter.name for parameter in parameters_of(kind)]
    for given in parameters:
        if given not in known:
            raise BadParameterError(unknown(f"parameter of {name}", given, known))
    return kind(**parameters)


def named(name: str) -> type[Experiment]:
    """Find an experiment's class by its name.

    Raises:
        BadParameterError: No experiment has that name.
    """
    known = experiments()
    if name not in known:
        raise BadParameterError(unknown("experiment", name, known))
    return known[name]


def unknown(what: str, given: str, known: Iterable[str]) -> str:
    """Say that nothing has that name, and which name was probably meant."""
    known = list(known)
    # Names differ in dashes and underscores more often than in letters.
    plain = {name.replace("_", "-"): name for name in known}
    close = difflib.get_close_matches(str(given).replace("_", "-"), plain, n=1)
    hint = f" Did you mean {plain[close[0]]!r}?" if close else ""
    names = f"There are: {', '.join(known)}." if known else "There are none."
    return f"{given!r} is no {what}.{hint} {names}"


def _kinds() -> Iterator[type[Experiment]]:
    for found in pkgutil.iter_modules(__path__):
        if found.name in _CONTRACT or found.name.startswith("_"):
            continue
        kind: type[Experiment] | None = None
        try:
            module = importlib.import_module(f"{__name__}.{found.name}")
            for kind in _defined(module):
                _try(kind)
                yield kind
        # Whatever is wrong in one file, the questions of the others can be asked.
        except (Exception, SystemExit) as error:
            line = _line(error, found.name)
            if line is None and kind is not None:
                line = _line_of(kind)
            _tell(found.name, line, f"{type(error).__name__}: {error}")


def _defined(module: ModuleType) -> Iterator[type[Experiment]]:
    from perfkit.experiments.base import Experiment

    for _, value in inspect.getmembers(module, inspect.isclass):
        here = value.__module__ == module.__name__
        if here and issubclass(value, Experiment) and hasattr(value, "name"):
            yield value


def _try(kind: type[Experiment]) -> None:
    """Do what every list and every option does with an experiment."""
    if not isinstance(kind.name, str):
        raise TypeError(f"the name is {kind.name!r}, which is no text")
    _ = kind().question, kind().parameters


def _line(error: BaseException, name: str) -> int | None:
    """The last line of a file that an error came through."""
    if isinstance(error, SyntaxError):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if os.path.basename(f.filename) == f"{name}.py"]
    return lines[-1] if lines else None


def _line_of(kind: type[Experiment]) -> int:
    return inspect.getsourcelines(kind)[1]


@functools.cache
def _tell(name: str, line: int | None, why: str) -> None:
    """Say once which file is left out, and why."""
    logging.getLogger(__name__).warning(
        "perfkit/experiments/%s.py%s: %s. It is left out: fix it or take it away.",
        name,
        f", line {line}" if line else "",
        " ".join(why.split()).rstrip("."),
    )
