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
import pkgutil
from typing import TYPE_CHECKING, Any

from perfkit.errors import BadParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perfkit.experiments.base import Experiment

__all__ = ["experiment", "experiments"]

# What experiments are made of; importing the last would load the engine for a list.
_CONTRACT = {"base", "parameters", "session"}


def experiments() -> dict[str, type[Experiment]]:
    """List every experiment of this installation, by name.

    A file that cannot be imported is left out and told, in a sentence, on stderr.

    Its question is the first line of the class's docstring, its parameters are the
    class's fields.
    """
    found = {kind.name: kind for kind in _kinds()}
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
    from perfkit.experiments.base import Experiment

    for found in pkgutil.iter_modules(__path__):
        if found.name in _CONTRACT or found.name.startswith("_"):
            continue
        try:
            module = importlib.import_module(f"{__name__}.{found.name}")
        # Whatever is wrong in one file, the questions of the others can be asked.
        except Exception as error:
            _tell(found.name, f"{type(error).__name__}: {error}")
            continue
        for _, value in inspect.getmembers(module, inspect.isclass):
            here = value.__module__ == module.__name__
            if here and issubclass(value, Experiment) and hasattr(value, "name"):
                yield value


@functools.cache
def _tell(name: str, why: str) -> None:
    """Say once which file is left out, and why."""
    logging.getLogger(__name__).warning(
        "perfkit/experiments/%s.py is left out, because it cannot be imported (%s); "
        "mend the file or take it away.",
        name,
        " ".join(why.split()),
    )
