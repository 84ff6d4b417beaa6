"""A finding: one question, asked of one machine, with everything that answers it."""

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from perfkit.findings.report import Fold, Report, Saved, in_html
from perfkit.findings.text import minute, plain
from perfkit.machine.record import Machine
from perfkit.measure.statistics import Comparison, Sure, Timing
from perfkit.measure.trial import Trial

if TYPE_CHECKING:
    from pandas import DataFrame


SCHEMA: Final = 2


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Lines of code, and what to write in their place.

    Attributes:
        file: Its name, without a folder; "" for a cell that was run.
        cell: Of a notebook: which of its cells of code, from 1, and ``line`` counts in
            it; 0 for all else.
        line: The first of the old lines, from 1; 0 for code that is an example.
        old: What stands there; where lines are only added, the one that they follow.
        new: What to write there; "" where lines are only deleted, and None where the
            place is known and what to write is not.
    """

    file: str = ""
    cell: int = 0
    line: int = 0
    old: str
    new: str | None

    @property
    def lines(self) -> range:
        """The numbers of the old lines."""
        return range(self.line, self.line + self.old.count("\n") + 1)

    @property
    def where(self) -> str:
        """The place in words: ``"train.py, line 12"``; "" for an example."""
        if not self.line:
            return ""
        cell = cell_in_words(self.cell) or ("" if self.file else "cell")
        last = self.line + self.old.count("\n")
        lines = (
            f"line {self.line}" if last == self.line else f"lines {self.line}-{last}"
        )
        return ", ".join(filter(None, [self.file, cell, lines]))

    def signed(self) -> Iterator[tuple[str, str]]:
        """Each line after ``"-"`` if it goes, ``"+"`` if it comes, else ``" "``."""
        old, new = self.old.split("\n"), (self.new or "").split("\n")
        # Deeply nested code keeps its shape, not its distance from the margin.
        shown = textwrap.dedent("\n".join([*old, *new])).split("\n")
        before, after = shown[: len(old)], shown[len(old) :] if self.new else []
        kept = _alike(before, after)
        behind = _alike(before[kept:][::-1], after[kept:][::-1])
        end, last = len(before) - behind, len(after) - behind
        yield from ((" ", line) for line in before[:kept])
        gone = " " if self.new is None else "-"
        yield from ((gone, line) for line in before[kept:end])
        yield from (("+", line) for line in after[kept:last])
        yield from ((" ", line) for line in before[end:])

    def __str__(self) -> str:
        """The place, and under it what goes and what comes."""
        lines = [f"  {sign} {line}" for sign, line in self.signed()]
        return "\n".join([self.where, *lines] if self.where else lines)


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines are the same before the first that is not."""
    same = (a == b for a, b in zip(one, other, strict=False))
    return len(list(itertools.takewhile(bool, same)))


def cell_in_words(cell: int) -> str:
    """Which cell of a notebook it is; "" for what is none."""
    return f"code cell {cell}" if cell else ""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the timings mean, in words: what to do, how much, how sure.

    Attributes:
        headline: One sentence: what to do, or what is so.
        much: What that brings, in a sentence: one ratio, two absolute numbers.
        sure: How sure that is.
        interval: The 95 % interval of the ratio, as ``"1.5 to 2.0"``; "" for none.
        edits: The code as it is, and as it should be.
        warnings: What could change the reader's decision, at most two sentences.
        because: The measured facts it rests on, a sentence each.
        next: What to do after that, or what to measure now.
        winner: The variant the headline names as fastest; "" where none is claimed.
        folds: More of it, as sentences and tables that a reader may unfold.
    """

    headline: str
    much: str = ""
    sure: Sure = ""
    interval: str = ""
    edits: tuple[Edit, ...] = ()
    warnings: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    next: str = ""
    winner: str = ""
    folds: tuple[Fold, ...] = ()

    def _repr_html_(self) -> str:
        why = Fold("How sure is this?", self.because)
        stamp = getattr(self, "_stamp", "")
        return in_html(Report(verdict=self, stamp=stamp, folds=(why,)))


class Dated(Protocol):
    """What was measured on a machine at some time."""

    @property
    def recorded(self) -> str:
        """When, ISO 8601."""

    @property
    def machine(self) -> Machine:
        """Where."""


def stamp(of: Dated) -> str:
    """Say where and when a recording is from."""
    when = minute(of.recorded)
    return f"Recorded on {when}, {plain(of.machine.summary)}; not run here."


@dataclass(frozen=True, kw_only=True, repr=False)
class Finding(Saved):
    """What one run of an experiment measured on one machine, and its verdict.

    Attributes:
        experiment: The experiment's name, such as ``"data-pipeline"``.
        question: The question as the experiment puts it.
        parameters: Name to value, as the run used them.
        recorded: When it began, ISO 8601 with the offset from UTC.
        machine: What it was measured on.
        trials: Every trial in the order they ran, raw ticks included.
        samples: The machine's load on one clock: ``"t"`` in seconds from the start of
            the run, then one list per reading; None where the driver gave none.
        timings: A rate with its interval per variant.
        comparisons: The ratio to the variant it is measured against.
        noise_floor: The ratio that two runs of the same thing reached here, at
            most: 1.04 means that no difference below 4 % is claimed. None if unknown.
        verdict: In words.
        baseline: The variant that was run twice a round to learn the noise; "" if none.
        unavailable: Why a variant was not run on this machine, by its name.
        guess: What the reader predicted before the run; "" if nothing.
        notes: Facts about the whole run, such as the images used.
        code: The lines that a variant ran, as a reader types them, by its name.
        budget_s: Seconds the run was given.
        stopped: True where Stop ended it before the budget did.
        unfinished: True in what is saved while the run goes on; where it stays so, the
            run was broken off.
        replayed: True in the copy of a recording that was shown in place of a run.
    """

    schema: Literal[2] = SCHEMA
    kind: Literal["finding"] = "finding"
    experiment: str
    question: str
    parameters: dict[str, Any]
    recorded: str
    perfkit: str
    machine: Machine
    trials: tuple[Trial, ...]
    samples: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    timings: tuple[Timing, ...]
    comparisons: tuple[Comparison, ...]
    noise_floor: float | None
    verdict: Verdict
    baseline: str = ""
    unavailable: dict[str, str] = field(default_factory=dict)
    guess: str = ""
    notes: dict[str, Any] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    budget_s: float
    stopped: bool = False
    unfinished: bool = False
    replayed: bool = False
    seed: int = 0

    # A finding is worked out once however many tables and charts ask about it.
    __hash__ = object.__hash__

    def __post_init__(self) -> None:
        """Let the verdict of a recording say what it is where it is shown alone."""
        if self.replayed:
            alone = replace(self.verdict)
            object.__setattr__(alone, "_stamp", self.stamp)
            object.__setattr__(self, "verdict", alone)

    @property
    def ended_early(self) -> str:
        """How the run ended before its time, in a sentence; "" where it did not."""
        if self.stopped:
            return "The run was stopped early: this is what was measured by then."
        if self.unfinished:
            return "The run was broken off; what is here was measured by then."
        return ""

    @property
    def stamp(self) -> str:
        """Where and when a recording is from, in a sentence; "" for what was run."""
        return stamp(self) if self.replayed else ""

    def table(self) -> "DataFrame":
        """One row per variant: its rate and ratio with their 95 % intervals."""
        from perfkit.findings.tables import table

        return table(self)

    @property
    def report(self) -> Report:
        """What a person reads of it."""
        from perfkit.findings.reports import of_finding

        return of_finding(self)
