"""A finding: one question, asked of one machine, with everything that answers it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

# Not for type checkers alone: files are held against these types.
from perfkit.machine.record import Machine  # noqa: TC001
from perfkit.measure.statistics import Comparison, Timing  # noqa: TC001
from perfkit.measure.trial import Trial  # noqa: TC001

if TYPE_CHECKING:
    from pathlib import Path

    from pandas import DataFrame

SCHEMA: Final = 1


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the timings mean, in words.

    Attributes:
        headline: One sentence: what is so, by how much, how sure that is.
        because: The measured facts it rests on, a sentence each.
        next: What to change or try now; the line of code where there is one.
        winner: The variant the headline names as fastest; "" where none is claimed.
    """

    headline: str
    because: tuple[str, ...] = ()
    next: str = ""
    winner: str = ""

    def _repr_html_(self) -> str:
        from perfkit.findings.card import verdict_in_html

        return verdict_in_html(self, getattr(self, "_stamp", ""))


@dataclass(frozen=True, kw_only=True)
class Finding:
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
        budget_s: Seconds the run was given.
        stopped: True where Stop ended it before the budget did.
        unfinished: True in what is saved while the run goes on; where it stays so, the
            run was broken off.
        replayed: True in the copy of a recording that was shown in place of a run.
    """

    schema: Literal[1] = SCHEMA
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
            return "The run was stopped before its budget was spent."
        if self.unfinished:
            return "The run was broken off; what is here was measured by then."
        return ""

    @property
    def stamp(self) -> str:
        """Where and when a recording is from, in a sentence; "" for what was run."""
        from perfkit.findings.text import plain

        if not self.replayed:
            return ""
        when = plain(self.recorded[:16].replace("T", " "))
        return f"Recorded on {when}, {plain(self.machine.summary)}; not run here."

    @property
    def path(self) -> Path | None:
        """Where this finding is saved; None while it is not."""
        return getattr(self, "_path", None)

    def table(self) -> DataFrame:
        """One row per variant: its rate and ratio with their 95 % intervals."""
        from perfkit.findings.tables import table

        return table(self)

    def __repr__(self) -> str:
        from perfkit.findings.card import in_text

        return in_text(self)

    def _repr_html_(self) -> str:
        from perfkit.findings.card import in_html

        return in_html(self)
