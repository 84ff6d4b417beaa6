"""What holding two machines against each other shows: an explanation.

A is the first of the two, B the second. Every ratio is B's speed over A's: below 1, B
is slower. Every change is B's seconds less A's.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

# Not for type checkers alone: what is written is held against these types.
from perfkit.comparing.differing import (  # noqa: TC001
    Differs,
    MachineDiffers,
    Ratio,
    RungRatio,
    Side,
)
from perfkit.measure.statistics import Comparing
from perfkit.passports.record import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pandas import DataFrame

    from perfkit.charts.figure import Figure

SCHEMA: Final = 1
Said = (
    Comparing | Literal["not the same job", "depends on the training", "not measured"]
)
THROTTLING, LOAD, UNEXPLAINED = "throttling", "background load", "unexplained"
# In the order of the waterfall; what is left comes last.
ALL_PARTS: Final = ("input", "dispatch", "transfer", "compute", THROTTLING, LOAD)
ALL_PARTS_AND_REST: Final = (*ALL_PARTS, UNEXPLAINED)
assert {*PARTS} < {*ALL_PARTS_AND_REST}


@dataclass(frozen=True, kw_only=True)
class Change:
    """What one part of a step takes on both machines.

    Attributes:
        name: One of ``ALL_PARTS_AND_REST``.
        a: Seconds of a step on A, ``b`` on B; None where it was not measured.
        change: B's less A's; ``low`` and ``high`` are the ends of its 95 % interval.
        share: Of the difference between the steps, and so ``share_low`` and
            ``share_high``; None where no difference is claimed.
        predicted: B's seconds as the rungs let expect them from A's; None if they do
            not.
        rungs: Those that stand for it.
        why: What stands behind its change, in a sentence; "" where it is not claimed.
    """

    name: str
    a: float | None = None
    b: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    share: float | None = None
    share_low: float | None = None
    share_high: float | None = None
    predicted: float | None = None
    rungs: tuple[str, ...] = ()
    why: str = ""

    @property
    def claimed(self) -> bool:
        """Whether it is shown to be part of the difference."""
        return (
            self.share is not None
            and self.share_low is not None
            and self.share_low > 0
            and self.name != UNEXPLAINED
        )


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """What the rungs let expect of B's step, from A's."""

    seconds: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Explained:
    """One job on both machines.

    Attributes:
        name: Of the training, or of the variant of a finding.
        unit: What its seconds are of: ``"step"`` or ``"example"``.
        a: Seconds on A, ``b`` on B; None where it was not measured.
        speed: None where the two are not compared.
        job: In what the jobs differ; () where they are the same.
        changes: In the order of ``ALL_PARTS_AND_REST``; () where there is no split.
        predicted: None where rungs are missing.
        missing: Why it is not compared, in a sentence; "" where it is.
    """

    name: str
    unit: str = "step"
    a: float | None = None
    b: float | None = None
    speed: Ratio | None = None
    job: tuple[Differs, ...] = ()
    changes: tuple[Change, ...] = ()
    predicted: Predicted | None = None
    missing: str = ""

    @property
    def claimed(self) -> bool:
        """Whether B is shown to be faster or slower."""
        return self.speed is not None and self.speed.verdict in ("faster", "slower")

    @property
    def slower(self) -> Side:
        """The machine that is shown to be slower."""
        if self.speed is None or not self.claimed:
            return ""
        return "B" if self.speed.verdict == "slower" else "A"

    @property
    def causes(self) -> tuple[Change, ...]:
        """The parts that are shown to make the difference, the largest first."""
        found = [change for change in self.changes if change.claimed]
        return tuple(sorted(found, key=lambda change: -(change.share or 0.0)))

    def change(self, name: str) -> Change | None:
        """One part; None where there is no split."""
        return next((one for one in self.changes if one.name == name), None)


def largest(works: Iterable[Explained]) -> Explained | None:
    """The job with the largest difference that is shown; None where none is."""
    claimed = [work for work in works if work.claimed]
    return max(claimed, key=lambda work: size(work.speed), default=None)


def size(speed: Ratio | None) -> float:
    """How far two speeds are apart, whichever is the higher."""
    ratio = speed.ratio if speed else 1.0
    return max(ratio, 1 / ratio)


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What to do on the slower machine.

    Attributes:
        title: What is wrong, in a few words.
        remedy: What to type or to change.
        seconds: Of a step, that it could explain at most.
        of: The job of that step.
    """

    title: str
    remedy: str
    seconds: float
    of: str


@dataclass(frozen=True, kw_only=True)
class One:
    """One of the two machines, as the charts and captions need it.

    Attributes:
        label: What its maker calls it.
        summary: The machine on a line.
        recorded: When, ISO 8601.
        cores: That a process may use.
        samples: Its load on one clock, see ``Passport``.
    """

    label: str
    summary: str
    recorded: str
    cores: float
    samples: dict[str, tuple[float | None, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, repr=False)
class Explanation:
    """Why the same training runs differently on two machines.

    Attributes:
        verdict: What is shown, as a word.
        headline: It in a sentence.
        because: What it rests on, a sentence each.
        job: In what the jobs differ; with that alone there is no verdict on speed.
        differences: Of the machines, what matters most first.
        rungs: Each part of the machines.
        works: Each job, as both did it.
        advice: For the slower machine, what could explain most first.
        next: Which measurement says more, a sentence each.
    """

    schema: Literal[1] = SCHEMA
    kind: Literal["explanation"] = "explanation"
    a: One
    b: One
    verdict: Said
    headline: str
    because: tuple[str, ...] = ()
    job: tuple[Differs, ...] = ()
    differences: tuple[MachineDiffers, ...] = ()
    rungs: tuple[RungRatio, ...] = ()
    works: tuple[Explained, ...] = ()
    advice: tuple[Advice, ...] = ()
    next: tuple[str, ...] = ()

    @property
    def main(self) -> Explained | None:
        """The job that the headline tells of: where the difference is largest."""
        return largest(self.works)

    @functools.cached_property
    def charts(self) -> dict[str, Figure]:
        """Its pictures, by what they show."""
        from perfkit.comparing.pictures import pictures

        return pictures(self)

    def table(self) -> DataFrame:
        """One row per job and part: seconds on both, their change and its share."""
        from perfkit.comparing.tables import table

        return table(self)

    def to_json(self) -> str:
        """All of it as JSON, the samples of both machines included."""
        from perfkit.comparing.tables import to_json

        return to_json(self)

    def export(self, path: str | Path) -> Path:
        """Write all of it as one HTML page that needs no network.

        Raises:
            BadFileError: It cannot be written.
            BadParameterError: ``path`` is no place for a page.
        """
        from perfkit.comparing.page import write

        return write(self, path)

    def __repr__(self) -> str:
        from perfkit.comparing.words import in_text

        return in_text(self)

    def _repr_html_(self) -> str:
        from perfkit.comparing.page import in_notebook

        return in_notebook(self)
