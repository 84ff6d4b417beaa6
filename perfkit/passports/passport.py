"""What one machine is, on one page: the record, read and written as a file."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from perfkit.errors import BadFileError, PerfkitError
from perfkit.findings import reading, store
from perfkit.findings.reading import (
    encode,
    faults_of_machine,
    faults_of_samples,
    in_order,
)
from perfkit.findings.report import Report, Saved
from perfkit.findings.text import plain
from perfkit.machine.checks.base import Check
from perfkit.machine.record import Machine

SCHEMA: Final = 2
# Seconds in which both measurements have two rounds or more on two cores.
BUDGET_S: Final = 180.0
# Why a thing was not measured for which the budget was too small.
ENDED: Final = "The run ended before it."
PartName = Literal["input", "dispatch", "transfer", "compute", "unexplained"]
# In the order in which a step goes through them; what is left comes last.
PARTS: Final[tuple[PartName, ...]] = get_args(PartName)


@dataclass(frozen=True, kw_only=True)
class BenchmarkRate:
    """How fast one part of the machine did work of a known size.

    Attributes:
        name: Of the microbenchmark, such as ``"JPEG decode"``.
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
        seconds: Per step; below 0 where the change made the step slower, which noise
            may do, or where things overlap. None where it was not measured.
        low: Lower end of the 95 % interval of ``seconds``; ``high`` is the upper end.
            It comes from rounds in which both ways met the same moments of the machine:
            it is that of the part's share, at the usual length of a step.
        how: By which change it was measured, or why it is 0 or None, in a sentence.
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


@dataclass(frozen=True, kw_only=True, repr=False)
class Passport(Saved):
    """A machine with its checks, the rates of its parts and the reference trainings.

    Attributes:
        label: What its maker calls the machine.
        recorded: When it was begun, ISO 8601 with the offset from UTC.
        perfkit: The version that made it.
        machine: What was measured on.
        checks: What is to be said of it, what costs most first.
        microbenchmarks: In their usual order.
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

    schema: Literal[2] = SCHEMA
    kind: Literal["passport"] = "passport"
    label: str
    recorded: str
    perfkit: str
    machine: Machine
    checks: tuple[Check, ...] = ()
    microbenchmarks: tuple[BenchmarkRate, ...] = ()
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
    def has_rates(self) -> bool:
        """Whether anything was measured."""
        return any(p.rate for p in self.microbenchmarks) or any(
            t.rate for t in self.trainings
        )

    @property
    def report(self) -> Report:
        """What a person reads of it."""
        from perfkit.passports.words import report

        return report(self)


# One takes 20 to 40 KB.
LARGEST_BYTES = 10**6
# Of the samples; more cannot be told apart on a chart.
MOST_SAMPLES = 300
_MOST = {"checks": 500, "microbenchmarks": 300}
_MOST |= {"trainings": 100, "samples": 200, "missed": 100}
_LONGEST_LABEL = 200
_MOST_VISITS = 100


def load(path: str | Path) -> Passport:
    """Read a passport from its file.

    Raises:
        BadFileError: There is no such file, or it is not a passport that this perfkit
            can read.
    """
    return store.read(path, parse, LARGEST_BYTES)


def parse(data: bytes, name: str) -> Passport:
    """Read a passport from all bytes of a file.

    Raises:
        BadFileError: It is anything but a passport; the sentence says what.
    """
    if len(data) > LARGEST_BYTES:
        raise BadFileError(f"{name} is too large to be a passport.")
    return reading.parse_as(Passport, data, name, faults)


def faults(passport: Passport) -> Iterator[str]:
    """What no machine can have shown, although each value is of the right type."""
    for name, most in _MOST.items():
        if len(getattr(passport, name)) > most:
            yield f"it has more than {most} {name}"
    yield from faults_of_machine(passport.machine)
    if len(passport.label) > _LONGEST_LABEL:
        yield "its label is too long"
    for one in passport.microbenchmarks:
        name = f"microbenchmark {plain(one.name, 80)}"
        yield from _disordered(name, one.low, one.rate, one.high)
        if one.limit is not None and one.limit <= 0:
            yield f"the limit of {name} is not above 0"
    for training in passport.trainings:
        name = f"training {plain(training.name, 80)}"
        yield from _disordered(name, training.low, training.seconds, training.high)
        if training.batch <= 0:
            yield f"the batch of {name} is not above 0"
        if training.parts and tuple(part.name for part in training.parts) != PARTS:
            yield f"the parts of {name} are not {', '.join(PARTS)}"
        if not all(in_order(p.low, p.seconds, p.high) for p in training.parts):
            yield f"a part of {name} lies outside its interval"
    if min(passport.noise_floors.values(), default=1.0) <= 0:
        yield "a noise floor is not above 0"
    if max(map(len, (passport.visits, *passport.visits.values()))) > _MOST_VISITS:
        yield f"it has more than {_MOST_VISITS} visits"
    if min(passport.drift.values(), default=0.0) < 0:
        yield "a drift is below 0"
    spans = (*passport.phases.values(), *itertools.chain(*passport.visits.values()))
    if any(end < began for began, end in spans):
        yield "a measurement ends before it begins"
    if max(map(len, passport.samples.values()), default=0) > MOST_SAMPLES:
        yield f"it has more than {MOST_SAMPLES} samples"
    yield from faults_of_samples(passport.samples)
    if not in_order(*passport.samples.get("t", ())):
        yield "the samples are not in order"


def _disordered(
    name: str, low: float | None, value: float | None, high: float | None
) -> Iterator[str]:
    """A rate, or the seconds of a step: above 0 and within its interval."""
    if value is not None and value <= 0:
        yield f"{name} is not above 0"
    elif (low or 0.0) < 0 or (high or 0.0) < 0 or not in_order(low, value, high):
        yield f"{name} lies outside its interval"


FOLDER = Path(__file__).parents[1] / "reference"
PASSPORT = "passport.json"


def recorded() -> dict[str, Passport]:
    """The passports of the machines that perfkit brings along, by machine.

    Raises:
        BadFileError: One of them was changed, and is no passport any more.
    """
    return {
        path.parent.name: load(path) for path in sorted(FOLDER.glob(f"*/{PASSPORT}"))
    }


# No reading has more of them.
_DIGITS = 6


def to_json(passport: Passport) -> str:
    """Write a passport as JSON: what is not known is left out, numbers are short."""
    return in_short(passport, nulls=False)


def save(passport: Passport, path: str | Path) -> Path:
    """Write a passport to a file; ``passport.path`` then says where.

    The file is there in full or, whatever happens, as it was before.

    Raises:
        PerfkitError: It cannot be written there. The passport itself is untouched.
    """
    try:
        data = to_json(passport).encode()
        parse(data, "what was measured")
    except (BadFileError, ValueError) as error:
        raise PerfkitError(f"The passport cannot be kept as a file: {error}") from error
    saved = store.write_as(path, data, passport.kind)
    store.remember(passport, saved)
    return saved


def in_short(record: object, *, nulls: bool = True) -> str:
    """Write a record as JSON with short numbers, without what is null if so asked."""
    told = _short_numbers(json.loads(encode(record)), nulls=nulls)
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _short_numbers(value: Any, *, nulls: bool) -> Any:
    if isinstance(value, dict):
        kept = {n: one for n, one in value.items() if nulls or one is not None}
        return {n: _short_numbers(one, nulls=nulls) for n, one in kept.items()}
    if isinstance(value, list):
        return [_short_numbers(item, nulls=nulls) for item in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
