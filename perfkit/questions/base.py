"""The contract of an experiment: a question, its parameters, its variants, its verdict.

A new experiment is a file or a folder here with one frozen dataclass in it. Its
docstring is the question, its fields are the parameters, its ``@variant`` methods are
the variants, and ``verdict`` reads the timings. See CONTRIBUTING.md for the steps.

A parameter is a field of the experiment, annotated with what it accepts. Its widget and
its option are made from that::

    side: Annotated[int, Range(32, 1024, unit="px", help="Side of the image")] = 256
"""

import dataclasses
import inspect
import os
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, TypeVar

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.plan import Tries
from perfkit.engine.trial import Yielded
from perfkit.errors import BadParameterError
from perfkit.findings.record import Finding, Verdict
from perfkit.questions.shared.verdicts import Race

Kind = TypeVar("Kind", bound="Experiment")
Item = TypeVar("Item")
_MARK = "_perfkit_variant"
# Why a function of the reader's own is not timed.
UNWRITTEN = "returns nothing: write its function first"
_LONGEST_MESSAGE = 80
# Of one thing; some variants hold it twice over.
_MOST_BYTES = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What do you want to know?

    Class attributes:
        name: What the command line calls it, such as ``"data-pipeline"``.
        needs: Libraries without which no variant can run, by import name.
        in_turns: Whether the trials of a round may take turns; False if they would
            disturb each other, for example by filling the memory.
        longest_s: The largest budget whose finding a file can hold.
        choices: The ``verdicts.Choice`` of each variant that a reader may choose, by
            name.
        function: Only where it takes a function of the reader's: that one, or None.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ("tensorflow",)
    in_turns: ClassVar[bool] = True
    longest_s: ClassVar[float] = 7200
    choices: ClassVar[Mapping[str, Any]] = {}

    def __post_init__(self) -> None:
        """Refuse a bad parameter before anything runs; numbers become Python's own."""
        for parameter in parameters_of(type(self)):
            value = parameter.checked(getattr(self, parameter.name))
            object.__setattr__(self, parameter.name, value)

    @property
    def baseline(self) -> str:
        """The variant that the others are compared with; a class attribute will do."""
        raise NotImplementedError(f"{type(self).__name__} has no baseline")

    @property
    def question(self) -> str:
        """The first line of the class's docstring."""
        return (inspect.getdoc(type(self)) or "").partition("\n")[0]

    @property
    def parameters(self) -> dict[str, Any]:
        """Every parameter's value, by name."""
        return {p.name: getattr(self, p.name) for p in parameters_of(type(self))}

    def make_variants(self) -> Mapping[str, Variant]:
        """The variants of this run, by name, in the order the class defines them.

        Override it where the parameters choose the variants.
        """
        methods = {
            name: (inspect.getdoc(value) or "").partition("\n")[0]
            for kind in reversed(type(self).__mro__)
            for name, value in vars(kind).items()
            if getattr(value, _MARK, False)
        }
        return {
            name: Variant(name, getattr(self, name), changes, self.baseline)
            for name, changes in methods.items()
        }

    @property
    def code(self) -> dict[str, str]:
        """The lines of each variant that has any, as a reader types them, by name."""
        lines = {
            name: entry.code or getattr(self.choices.get(name), "lines", "")
            for name, entry in self.make_variants().items()
        }
        return {name: code for name, code in lines.items() if code}

    def prepare(self) -> Iterator[Yielded]:
        """Make what every variant needs, once, in a separate process.

        Its time does not count in the budget. It yields notes, which the finding keeps.
        ``Note(REFUSED, {variant: why})`` shows variants without timing them, such as
        one that computes something else than the others.
        """
        yield from ()

    def tries(self, measured: Measurement) -> Tries:
        """Try what no rate can answer, after the rounds and outside the budget.

        It yields one ``Try`` at a time and gets its trial back, so each can decide the
        next. The finding says how each ended.
        """
        yield from ()

    @property
    def has_tries(self) -> bool:
        """Whether something is tried after the rounds, in time of its own."""
        return type(self).tries is not Experiment.tries

    def is_answered(self, measured: Measurement) -> bool:
        """Whether a run without a budget of its own may end here.

        It is called after each round, so it must demand more than a verdict does: if
        you look often enough, noise looks like a difference at some time.
        """
        race = self.race(measured)
        return race is not None and race.is_clear

    def race(self, measured: Measurement) -> Race | None:
        """The race that gives the verdict, and ends a run once its winner is clear.

        None if the question is not only which variant is fastest.
        """
        return None

    def result(self, measured: Measurement) -> Any:
        """The meaning of the timings in numbers, as a frozen record.

        The finding keeps it for readers of the file; verdict and charts use it. None if
        the comparisons say everything.
        """
        return None

    @staticmethod
    def reveal(finding: Finding) -> str:
        """Say what a notebook lets its reader decide first; "" for nothing."""
        return ""

    def verdict(self, measured: Measurement) -> Verdict:
        """Say in words what the timings mean; called again as they narrow."""
        if race := self.race(measured):
            return race.verdict()
        raise NotImplementedError(f"{type(self).__name__} has no verdict()")


def variant(
    work: Callable[[Any], Iterator[Yielded]],
) -> Callable[[Any], Iterator[Yielded]]:
    """Mark a method as a variant; its docstring says what it changes."""
    setattr(work, _MARK, True)
    return work


def with_yours(
    kind: type[Kind], function: Callable[..., Any], /, **parameters: Any
) -> Kind:
    """Make an experiment with a function of the reader's as its ``function``."""
    if not hasattr(kind, "function"):
        raise BadParameterError(f"{kind.name} takes no function of yours.")
    if not callable(function):
        raise BadParameterError(f"{function!r} is not a function; give one.")
    # A field would be a parameter, and no command line or widget can hold a function.
    body = {"__doc__": kind.__doc__, "function": staticmethod(function)}
    subclass: type[Kind] = type(f"{kind.__name__}WithYours", (kind,), body)
    return subclass(**parameters)


def mistake_of(check: Callable[[], str]) -> str:
    """What a check of the reader's own function says, or what that function raised."""
    try:
        return check()
    # Whatever the author of a function did wrong is theirs to read, not the run's end.
    except Exception as error:
        return raised(error)


def raised(error: Exception) -> str:
    """What a reader's function raised, with the beginning of its message."""
    first = (str(error).strip().splitlines() or [""])[0][:_LONGEST_MESSAGE]
    return f"raised {type(error).__name__}: {first}"


@dataclass(frozen=True)
class Range:
    """A number from ``low`` to ``high``, both included."""

    low: float
    high: float
    unit: str = ""
    help: str = ""

    def check(self, name: str, value: Any) -> None:
        """Raise ``BadParameterError`` unless ``value`` is a number in the range."""
        number = isinstance(value, Real) and not isinstance(value, bool)
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
    variants: Mapping[str, Item],
    first: str,
) -> dict[str, Item]:
    """Return the variants that a choice of many names, singly or by group.

    The variant ``first`` is always the first of them.
    """
    words = (first, *choice.split(","))
    names = (name for word in words for name in groups.get(word, (word,)))
    return {name: variants[name] for name in names}


def check_fits(what: str, size: float, do: str) -> None:
    """Raise ``BadParameterError`` for bytes that are too many in a trial's memory."""
    if size > _MOST_BYTES:
        raise BadParameterError(f"{what} would take {units.size(size)}; choose {do}.")


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

    def checked(self, value: Any) -> Any:
        """Give ``value`` as the type has it, or raise ``BadParameterError``."""
        if self.accepts is not None:
            self.accepts.check(self.name, value)
        if self.type is int and value != int(value):
            raise BadParameterError(f"{self.name} is {value!r}; give a whole number.")
        return self.type(value) if self.type in (int, float) else value


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
