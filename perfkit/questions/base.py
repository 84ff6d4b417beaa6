"""The contract of an experiment: a question, its parameters, its variants, its verdict.

A new experiment is a file or a folder here with one frozen dataclass in it. Its
docstring is the question, its fields are the parameters, its ``@variant`` methods are
the variants, and ``verdict`` reads the timings. See CONTRIBUTING.md for the steps.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.plan import Tries
from perfkit.engine.tick import Yielded
from perfkit.errors import BadParameterError
from perfkit.findings.record import Verdict
from perfkit.questions.parameters import parameters_of
from perfkit.questions.shared.race import Race

Kind = TypeVar("Kind", bound="Experiment")
_MARK = "_perfkit_variant"
# Why a function of the reader's own is not timed.
UNWRITTEN = "returns nothing: write its function first"
_LONGEST_MESSAGE = 80


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What do you want to know?

    Class attributes:
        name: What the command line calls it, such as ``"data-pipeline"``.
        needs: Libraries without which no variant can run, by import name.
        in_turns: Whether the trials of a round may take turns; False where they would
            be in each other's way, because they fill the memory, say.
        choices: The ``Choice`` of each variant that may be chosen, by name.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ("tensorflow",)
    in_turns: ClassVar[bool] = True
    choices: ClassVar[Mapping[str, Any]] = {}

    def __post_init__(self) -> None:
        """Refuse a bad parameter before anything runs."""
        for parameter in parameters_of(type(self)):
            parameter.check(getattr(self, parameter.name))

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
        """Make what every variant needs, once, in a process of its own.

        Its time is not part of the budget. It yields notes, which the finding keeps.
        ``Note(REFUSED, {variant: why})`` shows variants without timing them, such as
        one that computes something else than the rest.
        """
        yield from ()

    def tries(self, measured: Measurement) -> Tries:
        """Try what no rate answers, after the rounds and in time of its own.

        It yields one ``Try`` at a time and gets back the trial that came of it, so
        that one decides the next. How each ended is in the finding.
        """
        yield from ()

    @property
    def has_tries(self) -> bool:
        """Whether something is tried after the rounds, in time of its own."""
        return type(self).tries is not Experiment.tries

    def is_answered(self, measured: Measurement) -> bool:
        """Whether a run without a budget of its own may end here.

        It is asked after each round, so it must ask for more than a verdict does: what
        is looked at often looks like a difference some time.
        """
        race = self.race(measured)
        return race is not None and race.is_clear

    def race(self, measured: Measurement) -> Race | None:
        """What gives the verdict, and ends a run once it has a clear winner.

        None where more is asked than which variant is fastest.
        """
        return None

    def result(self, measured: Measurement) -> Any:
        """What the timings say in numbers, as a frozen record.

        The finding keeps it for who reads the file; verdict and charts are made from
        it. None where the comparisons say all.
        """
        return None

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
    """Make an experiment with a function of the reader's as its ``function``.

    Raises:
        BadParameterError: It is no function, or a parameter is not accepted.
    """
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
        return raised(error, _LONGEST_MESSAGE)


def raised(error: Exception, longest: int) -> str:
    """What a reader's function raised, with so many letters of its message."""
    first = (str(error).strip().splitlines() or [""])[0][:longest]
    return f"raised {type(error).__name__}: {first}"
