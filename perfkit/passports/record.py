"""A passport: one machine, how fast its parts are, and where fixed trainings wait.

It is small, because a class has thirty of them and a page may show a thousand: it holds
rates with their intervals and no ticks. Two passports hold the same jobs: no number in
a reference training is chosen by the machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

# Not for type checkers alone: files are held against these types.
from perfkit.machine.check import Check  # noqa: TC001
from perfkit.machine.record import Machine  # noqa: TC001

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: Final = 1
Parameter = str | bool | int | float | None
PartName = Literal["input", "dispatch", "transfer", "compute", "unexplained"]
# In the order in which a step goes through them; what is left comes last.
PARTS: Final[tuple[PartName, ...]] = (
    "input",
    "dispatch",
    "transfer",
    "compute",
    "unexplained",
)


@dataclass(frozen=True, kw_only=True)
class RungRate:
    """How fast one part of the machine did work of a known size.

    Attributes:
        name: Of the rung, such as ``"JPEG decode"``.
        group: The part of the machine that it tries.
        what: What is done, in a line.
        unit: What is counted, such as ``"FLOP"``, ``"B"`` or ``"images"``.
        rate: Units per second; None where it was not measured.
        low: Lower end of the 95 % interval of ``rate``; ``high`` is the upper end.
        trials: How many trials it rests on.
        limit: Units per second that are possible in theory; None where nobody knows.
        limit_from: How that was worked out, in words.
        missing: Why it was not measured, in a sentence; "" where it was.
    """

    name: str
    group: str = ""
    what: str = ""
    unit: str
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    trials: int = 0
    limit: float | None = None
    limit_from: str = ""
    missing: str = ""

    @property
    def share(self) -> float | None:
        """The rate as a share of what theory allows; None where one is unknown."""
        if self.rate is None or self.limit is None:
            return None
        return self.rate / self.limit


@dataclass(frozen=True, kw_only=True)
class Part:
    """Seconds of a training's step that one thing takes.

    Attributes:
        name: Which thing.
        seconds: Per step; below 0 where the swap made the step slower, which noise
            may do, or where things overlap. None where it was not measured.
        low: Lower end of the 95 % interval of ``seconds``; ``high`` is the upper end.
            It comes from rounds in which both ways met the same moments of the machine:
            it is that of the part's share, at the usual length of a step.
        how: By which swap it was measured, or why it is 0 or None, in a sentence.
    """

    name: PartName
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    how: str = ""


@dataclass(frozen=True, kw_only=True)
class Training:
    """One reference training: the same job on every machine, and its time taken apart.

    Attributes:
        name: Such as ``"small CNN from JPEG"``.
        what: It in a line.
        dtype: ``"float32"``, or a mixed precision as Keras names it.
        job: What has to be equal for two machines to have done the same: the network,
            the data, how they are fed, the seed and the number of the recipe.
        batch: Examples in a step.
        weights: Numbers that are learnt; None where no trial told.
        seconds: Per step, steadily; None where it was not measured.
        low: Lower end of the 95 % interval of ``seconds``; ``high`` is the upper end.
        trials: How many trials that rests on.
        parts: The split of ``seconds``, in the order of ``PARTS``; () where there is
            none.
        device: Where the step computed, such as ``"CPU:0"``; "" if unknown.
        missing: Why it was not measured, in a sentence; "" where it was.
    """

    name: str
    what: str = ""
    dtype: str = "float32"
    job: dict[str, str | int] = field(default_factory=dict)
    batch: int
    weights: int | None = None
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    trials: int = 0
    parts: tuple[Part, ...] = ()
    device: str = ""
    missing: str = ""

    @property
    def rate(self) -> float | None:
        """Examples per second; None where it was not measured."""
        return self.batch / self.seconds if self.seconds else None

    def part(self, name: PartName) -> Part | None:
        """One part of the split; None where the training has no split."""
        return next((part for part in self.parts if part.name == name), None)


@dataclass(frozen=True, kw_only=True)
class Passport:
    """A machine with its checks, the rates of its parts and the reference trainings.

    Attributes:
        label: What its maker calls the machine.
        recorded: When it was begun, ISO 8601 with the offset from UTC.
        perfkit: The version that made it.
        machine: What was measured on.
        checks: What is to be said of it, what costs most first.
        rungs: In the ladder's order.
        trainings: In the order of the reference trainings.
        samples: The machine's load on one clock: ``"t"`` in seconds from the start,
            then one list per reading; None where the driver gave none. Thinned out.
        phases: From when to when on that clock each measurement went, by its
            experiment's name; from its first visit to its last.
        visits: From when to when each of its visits went: a machine changes, so that
            each thing is measured several times with others in between. Older passports
            have none.
        noise_floors: By an experiment's name, the ratio that two runs of the same thing
            reached in it, at most; none where that is unknown.
        drift: By an experiment's name, by how much all of its rates may be off together
            because the machine rises and falls: half of the 95 % interval of the
            logarithm, which the intervals hold already. Older passports have none.
        parameters: By an experiment's name, the parameters it was run with.
        missed: Why a part of it is missing, a sentence each.
        budget_s: Seconds it was given.
        stopped: Whether Stop ended it before it was whole.
        unfinished: True in what is saved while it is made; where it stays so, making
            it was broken off.
        host: The host's name, ``user`` the user's; "" unless they were asked for.
    """

    schema: Literal[1] = SCHEMA
    kind: Literal["passport"] = "passport"
    label: str
    recorded: str
    perfkit: str
    machine: Machine
    checks: tuple[Check, ...] = ()
    rungs: tuple[RungRate, ...] = ()
    trainings: tuple[Training, ...] = ()
    samples: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    phases: dict[str, tuple[float, float]] = field(default_factory=dict)
    visits: dict[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    noise_floors: dict[str, float] = field(default_factory=dict)
    drift: dict[str, float] = field(default_factory=dict)
    parameters: dict[str, dict[str, str | bool | int | float | None]] = field(
        default_factory=dict
    )
    missed: tuple[str, ...] = ()
    budget_s: float
    stopped: bool = False
    unfinished: bool = False
    host: str = ""
    user: str = ""

    @property
    def whole(self) -> bool:
        """Whether nothing was broken off."""
        return not (self.stopped or self.unfinished or self.missed)

    @property
    def path(self) -> Path | None:
        """Where this passport is saved; None while it is not."""
        return getattr(self, "_path", None)

    def rung(self, name: str) -> RungRate | None:
        """One rung by its name; None where the passport has none of it."""
        return next((rung for rung in self.rungs if rung.name == name), None)

    def training(self, name: str, dtype: str = "float32") -> Training | None:
        """One reference training; None where the passport has none of it."""
        asked = (name, dtype)
        return next((t for t in self.trainings if (t.name, t.dtype) == asked), None)

    def __repr__(self) -> str:
        """Its label, the machine and what was measured, on a few lines."""
        from perfkit.passports.words import in_text

        return in_text(self)

    def _repr_html_(self) -> str:
        from perfkit.passports.card import in_html

        return in_html(self)
