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
from perfkit.engine.trial import Yielded
from perfkit.errors import BadParameterError
from perfkit.findings.record import Finding, Verdict
from perfkit.questions.parameters import parameters_of
from perfkit.questions.shared.verdicts import Race

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
        in_turns: Whether the trials of a round may take turns; False if they would
            disturb each other, for example by filling the memory.
        choices: The ``Choice`` of each variant that a reader may choose, by name.
        function: Only where it takes a function of the reader's: that one, or None.
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
