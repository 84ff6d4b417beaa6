"""A finding: one question, asked of one machine, with everything that answers it."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from perfkit.engine.statistics import Comparison, Timing
from perfkit.engine.trial import Trial

# Whoever makes a finding makes its verdict, and takes both from here.
from perfkit.findings.report import Edit as Edit
from perfkit.findings.report import Fact as Fact
from perfkit.findings.report import Verdict as Verdict
from perfkit.findings.shown import Charted, table
from perfkit.machine.record import Machine

if TYPE_CHECKING:
    from pandas import DataFrame


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
    recorded: str
    perfkit: str
    machine: Machine
    trials: tuple[Trial, ...]
    samples: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    timings: tuple[Timing, ...]
    comparisons: tuple[Comparison, ...]
    noise_floor: float | None
    verdict: Verdict
    result: dict[str, Any] = field(default_factory=dict)
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

    def as_recording(self) -> "Finding":
        """A copy that says what it is, as its verdict does where it is shown alone."""
        copy = replace(self, replayed=True)
        return replace(copy, verdict=replace(self.verdict, stamp=copy.stamp))

    @property
    def ended_early(self) -> str:
        """How the run ended before its time, in a sentence; "" where it did not."""
        if self.stopped:
            return "The run was stopped early; this holds the measurements until then."
        if self.unfinished:
            return "The run broke off; this holds the measurements until then."
        return ""

    def table(self) -> "DataFrame":
        """One row per variant: its rate and ratio with their 95 % intervals."""
        return table(self)
