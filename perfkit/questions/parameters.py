"""What an experiment lets you change: the source of its widgets and its options.

A parameter is a field of the experiment, annotated with what it accepts::

    side: Annotated[int, Range(32, 1024, unit="px", help="Side of the image")] = 256
"""

import dataclasses
import os
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from perfkit.errors import BadParameterError

_T = TypeVar("_T")


@dataclass(frozen=True)
class Range:
    """A number from ``low`` to ``high``, both included."""

    low: float
    high: float
    unit: str = ""
    help: str = ""

    def check(self, name: str, value: Any) -> None:
        """Raise ``BadParameterError`` unless ``value`` is a number in the range."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not self.low <= value <= self.high:
            raise BadParameterError(
                f"{name} is {value!r}; give a number from {self.low:g} to "
                f"{self.high:g}{' ' + self.unit if self.unit else ''}."
            )


@dataclass(frozen=True)
class Choice:
    """One of a few words; with ``many``, several of them joined by commas."""

    options: tuple[str, ...]
    many: bool = False
    help: str = ""
    unit: str = ""

    def check(self, name: str, value: Any) -> None:
        """Raise ``BadParameterError`` unless every word is one of the options."""
        words = value.split(",") if self.many and isinstance(value, str) else [value]
        for word in words:
            if word not in self.options:
                raise BadParameterError(
                    f"{name} is {word!r}; choose from {', '.join(self.options)}."
                )


def select(
    choice: str,
    groups: Mapping[str, Sequence[str]],
    variants: Mapping[str, _T],
    first: str,
) -> dict[str, _T]:
    """Return the variants that a choice of many names, singly or by group.

    The variant ``first`` is always the first of them.
    """
    words = (first, *choice.split(","))
    names = (name for word in words for name in groups.get(word, (word,)))
    return {name: variants[name] for name in names}


@dataclass(frozen=True)
class Folder:
    """The path of a folder that exists, or "" for none."""

    help: str = ""
    unit: str = ""

    def check(self, name: str, value: Any) -> None:
        """Raise ``BadParameterError`` unless ``value`` is empty or a folder."""
        if value and not os.path.isdir(os.path.expanduser(value)):
            raise BadParameterError(
                f"{name} is {str(value)!r}, which is not a folder; give a folder."
            )


@dataclass(frozen=True)
class Parameter:
    """One field of an experiment: what a widget or an option is made from.

    The type is ``int``, ``float``, ``str`` or ``bool``; this one accepts None.
    """

    name: str
    type: type
    default: Any
    accepts: Range | Choice | Folder | None

    @property
    def option(self) -> str:
        """The command-line option, such as ``"--image-side"``."""
        return "--" + self.name.replace("_", "-")

    @property
    def help(self) -> str:
        """One line on what it changes."""
        return self.accepts.help if self.accepts else ""

    def check(self, value: Any) -> None:
        """Raise ``BadParameterError`` unless the parameter accepts ``value``."""
        if self.accepts is not None:
            self.accepts.check(self.name, value)
        if self.type is int and value != int(value):
            raise BadParameterError(f"{self.name} is {value!r}; give a whole number.")


# The metadata of a field that nobody sets by a widget or an option.
NOT_ASKED = {"asked": False}


def parameters_of(experiment: "type[Any]") -> tuple[Parameter, ...]:
    """List an experiment's parameters in the order its class names them."""
    hints = typing.get_type_hints(experiment, include_extras=True)
    parameters = []
    for field in dataclasses.fields(experiment):
        kind, *extras = typing.get_args(hints[field.name]) or (hints[field.name],)
        accepts = [e for e in extras if isinstance(e, Range | Choice | Folder)]
        if field.metadata.get("asked", True):
            accepted = accepts[0] if accepts else None
            parameters.append(Parameter(field.name, kind, field.default, accepted))
    return tuple(parameters)
