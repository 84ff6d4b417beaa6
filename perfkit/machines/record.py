"""A machine in one small file: the passport, written and read again.

A passport may come from anybody, so it is read as data and checked against its types.
"""

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from perfkit.errors import BadFileError
from perfkit.findings import reading, store
from perfkit.findings.reading import (
    encode,
    faults_of_machine,
    faults_of_samples,
    in_order,
)
from perfkit.findings.shown import Saved
from perfkit.findings.text import plain
from perfkit.findings.training import ENDED, PARTS, Training
from perfkit.machine.checks.base import Check
from perfkit.machine.record import Machine

SCHEMA: Final = 2
# Seconds in which both measurements have two rounds or more on two cores.
BUDGET_S: Final = 180.0


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


@dataclass(frozen=True, kw_only=True, repr=False)
class Passport(Saved):
    """A machine with its checks, the rates of its parts and the reference trainings.

    Attributes:
        label: What its maker calls the machine.
        recorded: When it was begun, ISO 8601 with the offset from UTC.
        perfkit: The version that made it.
        machine: The computer, its software and its settings.
        checks: What the doctor says of it, what costs most first.
        microbenchmarks: In their usual order.
        trainings: In the order of the reference trainings.
        samples: The machine's load while the trainings ran, or without them the
            microbenchmarks: ``"t"`` in seconds, then one list per reading; None where
            the driver gave none. Thinned out.
        noise_floors: By an experiment's name, the ratio that two runs of the same thing
            reached in it, at most; none where that is unknown.
        parameters: By an experiment's name, the parameters it was run with.
        missed: Why a part of it is missing, a sentence each.
        budget_s: Seconds it was given.
        stopped: Whether Stop ended it before it was whole.
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
    noise_floors: dict[str, float] = field(default_factory=dict)
    parameters: dict[str, dict[str, str | bool | int | float | None]] = field(
        default_factory=dict
    )
    missed: tuple[str, ...] = ()
    budget_s: float
    stopped: bool = False
    host: str = ""
    user: str = ""

    @property
    def has_rates(self) -> bool:
        """Whether anything was measured."""
        rates = [benchmark.rate for benchmark in self.microbenchmarks]
        return any((*rates, *(training.rate for training in self.trainings)))

    @property
    def too_short(self) -> str:
        """That no training fit into the budget, and which to give; "" if one did."""
        ended = any(training.missing == ENDED for training in self.trainings)
        if not ended or self.stopped or any(t.rate for t in self.trainings):
            return ""
        # On a busy machine the usual one may be too short as well.
        enough = max(BUDGET_S, 2 * self.budget_s)
        return (
            f"No reference training was measured in {self.budget_s:.0f} s: make it "
            f"again with a budget of {enough:.0f} s."
        )


# One takes 20 to 40 KB.
LARGEST_BYTES = 10**6
# More cannot be told apart on a chart.
MOST_SAMPLES = 300
_MOST = {"checks": 500, "microbenchmarks": 300}
_MOST |= {"trainings": 100, "samples": 200, "missed": 100}
_LONGEST_LABEL = 200
# No reading has more of them.
_DIGITS = 6


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
    for name, limit in _MOST.items():
        if len(getattr(passport, name)) > limit:
            yield f"it has more than {limit} {name}"
    yield from faults_of_machine(passport.machine)
    if len(passport.label) > _LONGEST_LABEL:
        yield "its label is too long"
    for benchmark in passport.microbenchmarks:
        name = f"microbenchmark {plain(benchmark.name, 80)}"
        yield from _disordered(name, benchmark.low, benchmark.rate, benchmark.high)
        if benchmark.limit is not None and benchmark.limit <= 0:
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


def to_json(passport: Passport) -> str:
    """Write a passport as JSON: what is not known is left out, numbers are short."""
    document = _shortened(json.loads(encode(passport)))
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {n: _shortened(item) for n, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def save(passport: Passport, path: str | Path) -> Path:
    """Write a passport to a file; ``passport.path`` then says where.

    The file is there in full or, whatever happens, as it was before.

    Raises:
        PerfkitError: It cannot be written there. The passport itself is untouched.
    """
    write = functools.partial(to_json, passport)
    data = store.readable(write, parse, passport.kind)
    saved = store.write_as(path, data, passport.kind)
    store.remember(passport, saved)
    return saved
