"""What slows one training on one machine, with everything that shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

# Not for type checkers alone: files are held against these types.
from perfkit.findings.record import Edit, Finding, Verdict, cell_in_words
from perfkit.findings.report import Shown
from perfkit.machine.record import Machine  # noqa: TC001
from perfkit.measure.statistics import Comparison, Timing  # noqa: TC001
from perfkit.measure.trial import Trial  # noqa: TC001

if TYPE_CHECKING:
    from pathlib import Path

    from pandas import DataFrame

    from perfkit.findings.report import Report


# How a statement is known, the surest first.
Grade = Literal["measured here", "read from the driver", "inferred", "not tested"]


@dataclass(frozen=True, kw_only=True)
class Seconds:
    """Seconds of a step: their median and its 95 % interval."""

    median_s: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Gain:
    """How many times as fast: the estimate and its 95 % interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One thing that slows the training, proved by a swap or inferred.

    Attributes:
        cause: Its name, such as ``"serial-map"``.
        swap: The arm that proves it; "" where none does.
        kind: ``"defect"`` where the training does something needless,
            ``"opportunity"`` where nothing is wrong and the machine could do more.
        speedup: What it brings to be without it, as rates: without / as given.
        evidence: What was seen, in a sentence.
        fix: The line to change.
        grade: How it is known.
        edits: Where that line stands in the user's code, and what to write there; empty
            where reading the code does not make that certain.
    """

    cause: str
    swap: str
    kind: Literal["defect", "opportunity"]
    speedup: Gain
    evidence: str
    fix: str
    grade: Grade = "measured here"
    edits: tuple[Edit, ...] = ()

    @property
    def to_type(self) -> str:
        """The fix, and under it each place with what stands there and what to write."""
        return "\n".join([self.fix, *map(str, self.edits)])


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a step's time; parts whose seconds are all known add up to the step.

    Attributes:
        seconds: Of each step; None where they are not known, or only between what.
        grade: How it is known.
        how: What it was worked out from, in a sentence.
        low: Seconds that it takes at least; None where nothing is known.
        high: Seconds that it takes at most; None where nothing is known.
    """

    seconds: float | None
    grade: Grade
    how: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Together:
    """Several swaps applied at once, since gains do not add up.

    Attributes:
        swaps: Their arms' names.
        speedup: Over the training as given.
    """

    swaps: tuple[str, ...]
    speedup: Gain


@dataclass(frozen=True, kw_only=True)
class Hint:
    """What stands in the code and is often a mistake; nothing measured it.

    Attributes:
        line: Of the file or the cell, from 1.
        code: That line.
        says: What is often wrong with it, in a sentence.
        cell: Of a notebook: which of its cells of code, from 1; 0 for all else.
    """

    line: int
    code: str
    says: str
    grade: Literal["not tested"] = "not tested"
    cell: int = 0

    @property
    def where(self) -> str:
        """The place in words: ``"line 12"``."""
        cell = cell_in_words(self.cell)
        return ", ".join(filter(None, [cell, f"line {self.line}"]))


@dataclass(frozen=True, kw_only=True, repr=False)
class Diagnosis(Shown):
    """What slows one training on one machine, and what each change brings.

    Attributes:
        training: What it is called: the name of the function that makes it.
        recorded: When it began, ISO 8601 with the offset from UTC.
        step: Seconds of a step as given; None where none was measured.
        verdict: What slows it most, by how much, and what to change.
        healthy: Whether no defect was shown.
        causes: Whose interval lies above 1 and whose estimate is at least 1.05, the
            largest first.
        split: Where the time of a step goes, by part; ``"unexplained"`` is always
            there. Empty where the step is not known.
        together: The best swaps at once; None where there are not two of them.
        ceiling: The training without its input: no change of the input brings more.
        untested: Causes that were not looked for, each with why.
        unmeasured: Swaps that apply and may help, and that this run did not measure.
        aside: Swaps that bring something, but change what is learnt: to be judged once
            the defects are mended.
        hints: What stands in the code.
        anatomy: The plan of its pipeline; see ``perfkit.experiments.shared.anatomy``.
        facts: What is known of the training; see ``perfkit.diagnosis.facts``.
        outcome: How the training as given ended: ``"completed"``, or what kept it
            from being measured.
        code: A digest of the cell or the file with the function, by which a recording
            is known to be of this very training; "" where it cannot be read.

    The other attributes are those of a ``Finding``.
    """

    schema: Literal[2] = 2
    kind: Literal["diagnosis"] = "diagnosis"
    training: str
    recorded: str
    perfkit: str
    machine: Machine
    step: Seconds | None
    verdict: Verdict
    healthy: bool
    causes: tuple[Cause, ...] = ()
    split: dict[str, Part] = field(default_factory=dict)
    together: Together | None = None
    ceiling: Gain | None = None
    untested: dict[str, str] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    hints: tuple[Hint, ...] = ()
    anatomy: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    outcome: str = "completed"
    code: str = ""
    trials: tuple[Trial, ...] = ()
    samples: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    timings: tuple[Timing, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    noise_floor: float | None = None
    baseline: str = ""
    notes: dict[str, Any] = field(default_factory=dict)
    budget_s: float
    stopped: bool = False
    unfinished: bool = False
    replayed: bool = False
    seed: int = 0

    @property
    def path(self) -> Path | None:
        """Where it is saved; None while it is not."""
        return getattr(self, "_path", None)

    @property
    def finding(self) -> Finding:
        """The same as a finding, so that its trials are drawn and listed as one."""
        return Finding(
            experiment=self.kind,
            question=f"What slows {self.training}?",
            parameters={},
            recorded=self.recorded,
            perfkit=self.perfkit,
            machine=self.machine,
            trials=self.trials,
            samples=self.samples,
            timings=self.timings,
            comparisons=self.comparisons,
            noise_floor=self.noise_floor,
            verdict=self.verdict,
            baseline=self.baseline,
            notes=self.notes,
            budget_s=self.budget_s,
            stopped=self.stopped,
            unfinished=self.unfinished,
            replayed=self.replayed,
            seed=self.seed,
        )

    def table(self) -> DataFrame:
        """One row per swap that was tried, claimed or not, the largest gain first."""
        from perfkit.findings.tables import diagnosis_table as table

        return table(self)

    @property
    def report(self) -> Report:
        """What a person reads of it."""
        from perfkit.findings.reports import of_diagnosis

        return of_diagnosis(self)
