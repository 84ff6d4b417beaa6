"""What slows one training on one machine, with everything that shows it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from perfkit.findings.record import Finding, Verdict
from perfkit.machine.record import Machine  # noqa: TC001
from perfkit.measure.statistics import Comparison, Timing  # noqa: TC001
from perfkit.measure.trial import Trial  # noqa: TC001

if TYPE_CHECKING:
    from pathlib import Path

    from pandas import DataFrame


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Lines of the user's code, and what to write in their place.

    Attributes:
        file: Its name, without a folder; "" for a cell that was run.
        cell: Of a notebook: which of its cells of code, from 1, and ``line`` counts in
            it; 0 for all else.
        line: The first of the old lines, from 1.
        old: What stands there; where lines are only added, the one that they follow.
        new: What to write there; "" where lines are only deleted, and None where the
            place is known and what to write is not.
    """

    file: str
    cell: int = 0
    line: int
    old: str
    new: str | None

    @property
    def lines(self) -> range:
        """The numbers of the old lines."""
        return range(self.line, self.line + self.old.count("\n") + 1)

    @property
    def where(self) -> str:
        """The place in words: ``"train.py, line 12"``."""
        cell = cell_in_words(self.cell) or ("" if self.file else "cell")
        last = self.line + self.old.count("\n")
        lines = (
            f"line {self.line}" if last == self.line else f"lines {self.line}-{last}"
        )
        return ", ".join(filter(None, [self.file, cell, lines]))

    def __str__(self) -> str:
        """The place, and under it what stands there and what to write."""
        old, new = self.old.split("\n"), (self.new or "").split("\n")
        # Deeply nested code keeps its shape, not its distance from the margin.
        shown = textwrap.dedent("\n".join([*old, *new])).split("\n")
        first = "now" if self.new is None else "old"
        rows = [f"  {first}: {line}" for line in shown[: len(old)]]
        if self.new:
            rows += [f"  new: {line}" for line in shown[len(old) :]]
        deleted = ", delete" if self.new == "" else ""
        return "\n".join([f"{self.where}{deleted}", *rows])


def cell_in_words(cell: int) -> str:
    """Which cell of a notebook it is; "" for what is none."""
    return f"code cell {cell}" if cell else ""


# Not for type checkers alone: files are held against these types.


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


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What slows one training on one machine, and what each change brings.

    Attributes:
        training: What it is called: the name of the function that makes it.
        recorded: When it began, ISO 8601 with the offset from UTC.
        step: Seconds of a step as given; None where none was measured.
        verdict: One sentence: what slows it most, by how much.
        because: The measured facts that it rests on, a sentence each.
        next: What to change now.
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

    schema: Literal[1] = 1
    kind: Literal["diagnosis"] = "diagnosis"
    training: str
    recorded: str
    perfkit: str
    machine: Machine
    step: Seconds | None
    verdict: str
    because: tuple[str, ...] = ()
    next: str = ""
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
            verdict=Verdict(
                headline=self.verdict, because=self.because, next=self.next
            ),
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

    def __repr__(self) -> str:
        from perfkit.findings.card import diagnosis_in_text as in_text

        return in_text(self)

    def _repr_html_(self) -> str:
        from perfkit.findings.card import diagnosis_in_html as in_html

        return in_html(self)
