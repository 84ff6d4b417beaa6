"""What every record can do, and the record of one question: a finding.

A record is shown by what is registered for its class, which it does not know:
``report`` and ``table`` take any record. What makes them of one kind of record stands
beside the other texts about that kind, and registers itself here.
"""

import functools
import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self

from perfkit.engine.statistics import Comparison, Timing
from perfkit.engine.trial import Trial
from perfkit.errors import need

# Whoever makes a finding makes its verdict, and takes both from here.
from perfkit.findings.report import Edit as Edit
from perfkit.findings.report import Fact as Fact
from perfkit.findings.report import Report, in_html, in_text
from perfkit.findings.report import Verdict as Verdict
from perfkit.findings.text import minute
from perfkit.machine.record import Machine

if TYPE_CHECKING:
    from pandas import DataFrame

# By package of the records, the modules that register. They are imported when a record
# is first shown: a package that imported them itself would slow `import perfkit`.
_PRESENTERS = {
    "perfkit.findings": ("account_report", "reports", "standing"),
    "perfkit.machines": ("report",),
}
# Charts belong to questions, and those stand above what is found.
_GALLERY = "perfkit.questions.gallery"
_NO_CHART = "Its chart could not be drawn ({}): `perfkit.chart` says why."


def registered(show: Any, record: object) -> Any:
    """What is registered with ``show`` for a record, its presenters being imported.

    Raises:
        NotImplementedError: Nothing is.
    """
    for base in type(record).__mro__:
        package = base.__module__.rpartition(".")[0]
        for name in _PRESENTERS.get(package, ()):
            importlib.import_module(f"{package}.{name}")
    function = show.dispatch(type(record))
    if function is show.dispatch(object):
        raise NotImplementedError(f"{type(record).__name__} has no {show.__name__}")
    return function


@functools.singledispatch
def report(record: object) -> Report:
    """What a person reads of a record."""
    answer: Report = registered(report, record)(record)
    return answer


@functools.singledispatch
def table(record: object) -> "DataFrame":
    """The rows of a record."""
    rows: DataFrame = registered(table, record)(record)
    return rows


def frame(rows: Sequence[dict[str, Any]], columns: Iterable[str]) -> "DataFrame":
    """Make a DataFrame of these rows, or raise a MissingPartError without pandas."""
    need("pandas", "A DataFrame", "tables")
    from pandas import DataFrame

    return DataFrame(rows, columns=list(columns))


class Shown:
    """What has a report and shows itself as one: in a log, in a notebook."""

    @property
    def report(self) -> Report:
        """What a person reads of it."""
        return report(self)

    def __repr__(self) -> str:
        return in_text(self.report)

    def _repr_html_(self) -> str:
        return in_html(self.report)


@dataclass(frozen=True, kw_only=True, repr=False)
class Saved(Shown):
    """What is kept in a file of its own, and knows where that lies."""

    schema: int
    kind: str
    recorded: str
    perfkit: str
    machine: Machine

    @property
    def path(self) -> Path | None:
        """Where it is saved; None while it is not."""
        return getattr(self, "_path", None)


@dataclass(frozen=True, kw_only=True, repr=False)
class Replayable(Saved):
    """What was measured on a machine, here or in a recording that is shown instead."""

    replayed: bool = False

    @property
    def stamp(self) -> str:
        """Where and when a recording is from, in a sentence; "" for what was run."""
        if not self.replayed:
            return ""
        where = self.machine.summary
        return f"Recorded on {minute(self.recorded)}, {where}; not run here."


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer(Replayable):
    """What says in a verdict what to do."""

    verdict: Verdict

    def as_recording(self) -> Self:
        """A copy that says what it is, as its verdict does where it is shown alone."""
        copy = replace(self, replayed=True)
        return replace(copy, verdict=replace(self.verdict, stamp=copy.stamp))


class Picture(Protocol):
    """A chart, as a page needs it."""

    def in_page(self, prefix: str = "") -> str:
        """HTML whose ids begin with ``prefix``, so that several fit on one page."""


def pictures(document: Replayable) -> Iterator[Picture]:
    """The charts of a finding or a diagnosis, each drawn when it is asked for."""
    gallery: Any = importlib.import_module(_GALLERY)
    # The table and the labels of the rates say the ratios.
    kinds = (kind for kind in gallery.kinds(document) if kind != "ratios")
    return (gallery.chart(document, kind) for kind in kinds)


@dataclass(frozen=True, kw_only=True, repr=False)
class Charted(Answer):
    """What ran in trials; a notebook shows its first chart beneath its answer."""

    trials: tuple[Trial, ...]
    samples: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    timings: tuple[Timing, ...]
    comparisons: tuple[Comparison, ...]
    noise_floor: float | None
    baseline: str = ""
    guess: str = ""
    notes: dict[str, Any] = field(default_factory=dict)
    budget_s: float
    stopped: bool = False
    unfinished: bool = False
    seed: int = 0

    def table(self) -> "DataFrame":
        """One row per variant: its rate and ratio with their 95 % intervals.

        Of a diagnosis the variants are the changes that were tried, claimed or not.
        """
        return table(self)

    def _repr_html_(self) -> str:
        report, figure = self.report, ""
        try:
            figure = next((picture.in_page() for picture in pictures(self)), "")
        # A file may hold anything: whatever its chart does, its answer is shown.
        except Exception as error:
            sentence = _NO_CHART.format(type(error).__name__)
            report = replace(report, besides=(*report.besides, sentence))
        return in_html(report, figure=figure)


# What one has as the engine's ``Measurement`` has it.
MEASURED = ("trials", "samples", "timings", "comparisons", "noise_floor", "baseline")
SCHEMA: Final = 2


@dataclass(frozen=True, kw_only=True, repr=False)
class Finding(Charted):
    """What one run of an experiment measured on one machine, and its verdict.

    Attributes:
        experiment: The experiment's name, such as ``"data-pipeline"``.
        question: The question as the experiment puts it.
        parameters: Name to value, as the run used them.
        recorded: When it began, ISO 8601 with the offset from UTC.
        machine: The computer that was measured.
        trials: Every trial in the order they ran, raw ticks included.
        samples: The machine's load on one clock: ``"t"`` in seconds from the start of
            the run, then one list per reading; None where the driver gave none.
        timings: A rate with its interval per variant.
        comparisons: The ratio of each variant to the one it is compared with.
        noise_floor: The ratio that two runs of the same thing reached here, at
            most: 1.04 means that no difference below 4 % is claimed. None if unknown.
        verdict: The answer in words.
        result: Its numbers, in the record of its question; empty if they add nothing
            to ``comparisons``.
        baseline: The variant that ran twice a round to show the noise; "" if none.
        unavailable: Why a variant was not run on this machine, by its name.
        guess: What the reader predicted before the run; "" if nothing.
        notes: Facts about the whole run, such as the images used.
        code: The lines that a variant ran, as a reader types them, by its name.
        budget_s: Seconds the run was given.
        stopped: True if Stop ended it before the budget did.
        unfinished: True in the file while the run goes on; if it stays True, the run
            broke off.
        replayed: True in the copy of a recording that was shown instead of a run.
    """

    schema: Literal[2] = SCHEMA
    kind: Literal["finding"] = "finding"
    experiment: str
    question: str
    parameters: dict[str, Any]
    result: dict[str, Any] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)

    # A finding is worked out once however many tables and charts ask about it.
    __hash__ = object.__hash__

    @property
    def ended_early(self) -> str:
        """How the run ended before its time, in a sentence; "" where it did not."""
        if self.stopped:
            return "The run was stopped early; this holds the measurements until then."
        if self.unfinished:
            return "The run broke off; this holds the measurements until then."
        return ""
