"""What slows one training on one machine, with everything that shows it."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from perfkit import units
from perfkit.engine.statistics import WORTH_KNOWING, Comparison, Sure
from perfkit.findings.account import Account
from perfkit.findings.record import Charted, Edit, Finding
from perfkit.findings.text import listed

# How a statement is known, the surest first.
Grade = Literal["measured here", "read from the driver", "inferred", "not tested"]
# The variant in which the best changes are made at once.
TOGETHER = "together"
# Notes: what a script was asked with, as the command line has it, and that it was given
# arguments of its own.
ASKED, ARGUMENTS = "asked", "arguments"
# A gain that may hide in what was left open, and would be worth finding.
MUCH = 1.25
# What showed less than this in its one round may not bring much.
_HOPELESS = 0.97
# Variants that leave a whole group out: all input, and all who watch.
WITHOUT_INPUT, WITHOUT_OBSERVERS = "without input", "without observers"
WITHOUT_VALIDATION = "without validation"


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

    @property
    def is_known(self) -> bool:
        """Whether its interval says enough for it to be a result."""
        return units.is_known(self.low, self.high)

    @property
    def ends(self) -> str:
        """Its interval as a reader repeats it; "" where it says too little."""
        ends = f"{units.times(self.low)} to {units.times(self.high)}"
        return ends if self.is_known else ""

    @property
    def is_much(self) -> bool:
        """Whether it is shown, and so large that something holds the training up."""
        return self.low > 1 and self.estimate >= MUCH

    @property
    def interval(self) -> str:
        """How many times as fast, with its interval, as text."""
        return units.ratio_between(self.estimate, self.low, self.high)

    @property
    def brief(self) -> str:
        """How many times as fast, in words."""
        if not self.is_known:
            return "faster, by how much is not known yet"
        return f"{units.times(self.estimate)} times as fast"


def line_in_words(training: str, file: str, line: int, cell: int = 0) -> str:
    """A line of a training, such as ``"nets/unet.py line 5"``.

    ``file`` is as in an account: from the script's folder, "" for a cell. ``cell`` is
    that of a notebook, from 1; 0 for all else.
    """
    is_script = file == training.partition(":")[0]
    places = "" if is_script else file, f"cell {cell}" if cell else "", f"line {line}"
    return " ".join(filter(None, places))


def without_line(training: str, file: str, line: int, cell: int = 0) -> str:
    """What the variant is called that leaves the work of such a line out."""
    return f"without {line_in_words(training, file, line, cell)}"


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One thing that slows the training, proved by a change or inferred.

    Attributes:
        cause: Its name, such as ``"serial-map"``.
        change: The variant that proves it; "" where none does.
        kind: ``"defect"`` where the training does something needless,
            ``"opportunity"`` where nothing is wrong and the machine could do more.
        speedup: What it brings to be without it, as rates: without / as given.
        evidence: What was seen, in a sentence.
        fix: The line to change.
        grade: How it is known.
        edits: Where that line stands in the user's code, and what to write there; empty
            where reading the code does not make that certain.
        do: What to do about it: an imperative without its full stop.
        mind: What doing so may cost or break besides, in a sentence; "" for nothing.
        subject: Of the sentence that says how fast the training then runs.
        group: The variant that leaves out the whole group it lies in; "" for none.
        ceiling: Whether it shows what is lost, and no change brings just that.
        at_least: Whether doing all of ``fix`` brings that at least.
    """

    cause: str
    change: str
    kind: Literal["defect", "opportunity"]
    speedup: Gain
    evidence: str
    fix: str
    grade: Grade = "measured here"
    edits: tuple[Edit, ...] = ()
    do: str
    mind: str = ""
    subject: str = "The training then"
    group: str = ""
    ceiling: bool = False
    at_least: bool = False


@dataclass(frozen=True, kw_only=True)
class Together:
    """Several changes applied at once, by variant, since gains do not add up."""

    changes: tuple[str, ...]
    speedup: Gain


@dataclass(frozen=True, kw_only=True, repr=False)
class Diagnosis(Charted):
    """What slows one training on one machine, and what each change brings.

    Attributes:
        training: What it is called: the name of the function that makes it.
        recorded: When it began, ISO 8601 with the offset from UTC.
        step: Seconds of a step as given; None where none was measured.
        verdict: What slows it most, by how much, and what to change.
        healthy: Whether no defect was shown.
        causes: Whose interval lies above 1 and whose estimate is at least 1.05, the
            largest first.
        together: The best changes at once; None where there are not two of them.
        ceiling: The training without its input: no change of the input brings more.
        untested: Causes that were not looked for, each with why.
        unmeasured: Changes that apply and may help, and that this run did not measure.
        aside: Changes that bring something, but change what is learnt: to be judged
            once the defects are fixed.
        left_out: Variants that leave the work of a line out, each with that line in
            words: ceilings, and never causes.
        facts: What is known of the training; see ``perfkit.training.diagnose.facts``.
        outcome: How the training as given ended: ``"completed"``, or what kept it
            from being measured.
        account: Where its seconds go, line by line; None where nobody looked.
        code: A digest of the cell or the file with the function, by which a recording
            is known to be of this very training; "" where it cannot be read.

    The other attributes are those of a ``Finding``.
    """

    schema: Literal[3] = 3
    kind: Literal["diagnosis"] = "diagnosis"
    training: str
    step: Seconds | None
    healthy: bool
    causes: tuple[Cause, ...] = ()
    together: Together | None = None
    ceiling: Gain | None = None
    untested: dict[str, str] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    outcome: str = "completed"
    account: Account | None = None
    code: str = ""

    def compared(self, variant: str) -> Comparison | None:
        """A variant against the training as given; None where it was not measured."""
        return next((c for c in self.comparisons if c.variant == variant), None)

    def how_sure(self, cause: Cause) -> Sure:
        """How sure the gain of a cause is; what no change proves is likely at most."""
        compared = self.compared(cause.change) if cause.change else None
        if not cause.speedup.is_known:
            return "not known yet"
        if compared is None or cause.grade != "measured here":
            return "likely"
        return compared.sure

    @property
    def best(self) -> tuple[Cause, ...]:
        """Of the changes that proved a cause the best; a callback is one of its own."""
        best: dict[str, Cause] = {}
        for cause in self.causes:
            best.setdefault(
                cause.change if cause.cause == "callback" else cause.cause, cause
            )
        return tuple(best.values())

    def explained(self, limit: str) -> float:
        """The most that a change of what it leaves out is shown to bring; 0 if none."""
        within = (c for c in self.causes if c.group == limit and not c.ceiling)
        return max((c.speedup.estimate for c in within), default=0.0)

    @property
    def left_open(self) -> tuple[str, ...]:
        """Changes that were measured and may still bring much, for all that shows."""
        reported = {cause.change for cause in self.causes} | {*self.aside, TOGETHER}
        return tuple(
            c.variant
            for c in self.comparisons
            if c.variant not in reported
            and c.variant not in self.left_out
            and (c.verdict == "too noisy to say" or not c.stands_out)
            and c.high > MUCH
            and (c.is_judged or c.ratio > _HOPELESS)
        )

    @property
    def in_order(self) -> Iterator[str]:
        """What no change of a whole group can bring, a sentence each."""
        watching = ("callbacks", "metrics", "validation", "progress")
        observers = [name for name in watching if self.facts.get(name)] or watching
        groups = {WITHOUT_INPUT: ["input"], WITHOUT_OBSERVERS: observers}
        for name, parts in groups.items():
            compared = self.compared(name)
            # One of its changes may be shown to bring more.
            if compared is None or not self.explained(name) <= compared.high < MUCH:
                continue
            subject = listed(f"its {part}" for part in parts)
            subject = subject.replace("progress", "progress bar")
            share = units.percent(compared.high - 1)
            gain = f"more than {share}" if compared.high > 1 else "anything"
            if compared.high < WORTH_KNOWING:
                pronoun = "them" if parts[1:] else "it"
                yield (
                    f"Nothing is wrong with {subject}: "
                    f"no change of {pronoun} brings {gain}."
                )
            else:
                yield f"No change of {subject} brings {gain}."

    @functools.cached_property
    def finding(self) -> Finding:
        """The same as a finding, so that its trials are drawn and listed as one."""
        names = {field.name for field in fields(Charted)} - {"schema", "kind"}
        values = {name: getattr(self, name) for name in names}
        parameters = self.facts.get(ASKED)
        return Finding(
            experiment=self.kind,
            question=f"What slows {self.training}?",
            parameters=parameters if isinstance(parameters, dict) else {},
            **values,
        )
