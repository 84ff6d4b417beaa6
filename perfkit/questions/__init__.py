"""The questions, a room each: a file, or a folder with its work, verdict and charts.

A new file or folder here with one named ``Experiment`` in it is found by listing this
folder: nothing else has to know about it. ``base`` is the contract; what several
questions train on lies in ``shared``.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.util
import inspect
import pkgutil
import sys
from typing import TYPE_CHECKING, Any

from perfkit.errors import BadParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from perfkit.charts.canvas import Kind
    from perfkit.findings.record import Finding
    from perfkit.questions.base import Experiment

__all__ = ["experiment", "experiments"]

# What questions are made of, and asked with.
_NO_ROOMS = {*("base", "session", "runs", "replay", "gallery"), *("shared",)}


def experiments() -> dict[str, type[Experiment]]:
    """List every experiment of this installation, by name."""
    return dict(sorted({kind.name: kind for kind in _kinds()}.items()))


def experiment(
    name: str, /, *, mine: Callable[..., Any] | None = None, **parameters: Any
) -> Experiment:
    """Make one experiment by its name; every parameter has a default.

    Args:
        name: Of the experiment.
        mine: A function of your own, timed as one more variant, ``yours``, where the
            experiment takes one. What it gives is checked as that of all variants is.
            One that gives back None is still to be written, and only the others run.
        **parameters: Of the experiment.

    Raises:
        BadParameterError: No experiment or parameter has that name, a value is outside
            what the parameter accepts, or the experiment takes no such function.
    """
    # Whoever imports the list of questions needs no NumPy before asking one.
    from perfkit.questions.base import parameters_of, with_yours

    kind = find_class(name)
    names = [parameter.name for parameter in parameters_of(kind)]
    for parameter in parameters:
        if parameter not in names:
            raise BadParameterError(unknown(f"parameter of {name}", parameter, names))
    if mine is None:
        return kind(**parameters)
    return with_yours(kind, mine, **parameters)


def find_class(name: str) -> type[Experiment]:
    """Find an experiment's class by its name; ``BadParameterError`` if it has none."""
    classes = experiments()
    if name not in classes:
        raise BadParameterError(unknown("experiment", name, classes))
    return classes[name]


@functools.cache
def charts_of(name: str) -> Mapping[str, Kind]:
    """The charts that only the findings of one experiment have, by name.

    They are ``KINDS`` of the module ``charts`` in the experiment's folder, if any.
    """
    kind = experiments().get(name)
    room = kind.__module__ if kind else ""
    place = f"{room}.charts"
    is_folder = hasattr(sys.modules.get(room), "__path__")
    if not is_folder or importlib.util.find_spec(place) is None:
        return {}
    kinds: Mapping[str, Kind] = importlib.import_module(place).KINDS
    return kinds


@functools.lru_cache(maxsize=4)
def result_of(finding: Finding) -> Any:
    """What a finding says in numbers, as the record of its question.

    It is worked out anew from what was measured: a file may hold anything else.
    """
    from perfkit.findings.standing import measurement

    return question_of(finding).result(measurement(finding))


def question_of(finding: Finding) -> Experiment:
    """The question that a finding answers, with its parameters as far as they fit.

    A file may hold anything, and an older one parameters that are gone.
    """
    from perfkit.questions.base import parameters_of

    kind = experiments()[finding.experiment]
    names = {parameter.name for parameter in parameters_of(kind)}
    try:
        return kind(**{n: v for n, v in finding.parameters.items() if n in names})
    except (BadParameterError, TypeError):
        return kind()


def unknown(noun: str, word: str, names: Iterable[str]) -> str:
    """Say that nothing has that name, and which name was probably meant."""
    names = list(names)
    # Names differ in dashes and underscores more often than in letters.
    plain = {name.replace("_", "-"): name for name in names}
    close = difflib.get_close_matches(str(word).replace("_", "-"), plain, n=1)
    hint = f" Did you mean {plain[close[0]]!r}?" if close else ""
    listing = f"Choose from: {', '.join(names)}." if names else "There are none."
    return f"Unknown {noun}: {word!r}.{hint} {listing}"


def _kinds() -> Iterator[type[Experiment]]:
    from perfkit.questions.base import Experiment

    for room in pkgutil.iter_modules(__path__):
        if room.name in _NO_ROOMS or room.name.startswith("_"):
            continue
        module = importlib.import_module(f"{__name__}.{room.name}")
        for _, value in inspect.getmembers(module, inspect.isclass):
            if value.__module__ == module.__name__ and issubclass(value, Experiment):
                yield value
