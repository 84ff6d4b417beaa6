"""A machine in one small file: the passport, written, read again, and as rows.

A passport may come from anybody, so it is read as data and checked against its types.
A ``Side`` is what one machine measured, row by row.
"""

import functools
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from perfkit import units
from perfkit.findings import reading, store
from perfkit.findings.reading import faults_of_machine, faults_of_samples, in_order
from perfkit.findings.record import Saved
from perfkit.findings.standing import Microbenchmark
from perfkit.findings.text import minute, one_line
from perfkit.findings.training import PARTS, Part, Training, seconds
from perfkit.machine.checks.base import Check
from perfkit.machine.record import Machine

SCHEMA: Final = 2
MICROBENCHMARKS, TRAININGS = "machine-ladder", "reference-trainings"
# Seconds in which both measurements have two rounds or more on two cores.
BUDGET_S: Final = 180.0


@dataclass(frozen=True, kw_only=True)
class BenchmarkRate(Microbenchmark):
    """How fast one part of the machine did work of a known size.

    Attributes:
        name: Of the microbenchmark, such as ``"JPEG decode"``.
        rate: Units per second; None where it was not measured.
        low: Lower end of the 95 % interval of ``rate``; ``high`` is the upper end.
        trials: How many trials it rests on.
        missing: Why it was not measured, in a sentence; "" where it was.
    """

    name: str
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    trials: int = 0
    missing: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Passport(Saved):
    """A machine with its checks, the rates of its parts and the reference trainings.

    Attributes:
        label: What the machine is called, as the file was.
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
        missed: Why a part of it is missing, a sentence each.
        budget_s: Seconds it was given.
        stopped: Whether Stop ended it before it was whole.
    """

    schema: Literal[2] = SCHEMA
    kind: Literal["passport"] = "passport"
    label: str
    checks: tuple[Check, ...] = ()
    microbenchmarks: tuple[BenchmarkRate, ...] = ()
    trainings: tuple[Training, ...] = ()
    samples: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    noise_floors: dict[str, float] = field(default_factory=dict)
    missed: tuple[str, ...] = ()
    budget_s: float
    stopped: bool = False


# More cannot be told apart on a chart.
MOST_SAMPLES = 300
_MOST = {"checks": 500, "microbenchmarks": 300}
_MOST |= {"trainings": 100, "samples": 200, "missed": 100}
_LONGEST_LABEL = 200


@reading.faults.register
def _passport_faults(passport: Passport) -> Iterator[str]:
    """What no machine can have shown, although each value is of the right type."""
    for name, limit in _MOST.items():
        if len(getattr(passport, name)) > limit:
            yield f"it has more than {limit} {name}"
    yield from faults_of_machine(passport.machine)
    if len(passport.label) > _LONGEST_LABEL:
        yield "its label is too long"
    for benchmark in passport.microbenchmarks:
        name = f"microbenchmark {benchmark.name}"
        yield from _disordered(name, benchmark.low, benchmark.rate, benchmark.high)
        if benchmark.limit is not None and benchmark.limit <= 0:
            yield f"the limit of {name} is not above 0"
    for training in passport.trainings:
        name = f"training {training.name}"
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
    """The passports of perfkit's own recorded machines, by machine.

    Raises:
        BadFileError: Somebody changed one of them, so it is not a passport any more.
    """
    return {
        path.parent.name: store.read(path, Passport)
        for path in sorted(FOLDER.glob(f"*/{PASSPORT}"))
    }


# What a machine measured, row by row.

# The training a row belongs to, "" for a microbenchmark, and which part of it.
Key = tuple[str, str]
# What stands in place of a part in the row of a whole step.
STEP = "step"
# Nothing is done less often or more often in a second; a file may say anything.
_LEAST, _GREATEST = 1e-9, 1e21
# Standard errors in half of a 95 % interval.
HALF = 1.96
# Two runs of one machine, minutes apart, differ by more than the trials of either show:
# memory lies elsewhere, a host has other guests. A standard deviation of the logarithm;
# see docs/trust.md.
BETWEEN_RUNS = 0.02
# Noise may let a part seem longer than its step, and no more than so many times.
_MOST_OF_STEP = 100.0
# Fewer samples than this say nothing of a load.
_ENOUGH_SAMPLES = 5
_LONGEST = 60


@dataclass(frozen=True, kw_only=True)
class Value:
    """What one machine measured for one row, with its 95 % interval.

    Attributes:
        value: Seconds, or units per second; None where it was not measured.
        low: Lower end; ``high`` is the upper end.
        unit: ``"s"`` for seconds, else what is counted per second.
        trials: How many it rests on.
        task: What was done, where that differs from machine to machine.
        missing: Why it was not measured, in a sentence; "" where it was.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = "s"
    trials: int = 0
    task: str = ""
    missing: str = ""

    @functools.cached_property
    def log_speed(self) -> tuple[float, float] | None:
        """The logarithm of its speed, and half of the 95 % interval of that.

        The interval holds what another run would differ by.
        """
        low, value, high = self.low or 0.0, self.value or 0.0, self.high or 0.0
        if not all(_LEAST <= number <= _GREATEST for number in (low, value, high)):
            return None
        sign = -1 if self.unit == "s" else 1
        half = math.hypot(math.log(high / low) / 2, HALF * BETWEEN_RUNS)
        return sign * math.log(value), half

    @property
    def half(self) -> float:
        """Half of its interval, in its unit."""
        return ((self.high or 0.0) - (self.low or 0.0)) / 2


def write_amount(value: float | None, unit: str) -> str:
    """Write what a row holds: seconds, or units per second."""
    return seconds(value) if unit == "s" else units.rate(value or 0.0, unit)


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of two machines, or one of a class.

    Attributes:
        origin: Its label, its parts and when it was recorded, on a line.
        machine: Its record.
        samples: Its load meanwhile, as ``Finding.samples`` holds it.
        values: What it measured.
        jobs: What each training was, by name, in words.
        floors: The noise floors of the measurements, by name.
    """

    origin: str
    machine: Machine
    samples: Mapping[str, tuple[float | None, ...]]
    values: dict[Key, Value]
    jobs: dict[str, dict[str, str]]
    floors: Mapping[str, float]

    def floor(self, key: Key) -> float:
        """The noise floor of a row, as a logarithm."""
        return math.log(self.floors.get(TRAININGS if key[0] else MICROBENCHMARKS, 1.0))

    @property
    def cores_of_others(self) -> float | None:
        """Cores that other programs kept busy meanwhile; None if unknown."""
        return self._mean("cpu_other")

    @property
    def share_of_others(self) -> float | None:
        """Share of its cores that other programs took; None if unknown.

        Cores that stood idle all the same would have done what others took.
        """
        own_cores, other_cores = self._mean("cpu_trial"), self.cores_of_others
        if not own_cores or other_cores is None:
            return None
        granted = self.machine.cores_granted
        gone = granted - min(granted, max(0.0, self.machine.cores - other_cores))
        return max(0.0, gone - max(0.0, granted - gone - own_cores)) / granted

    def _mean(self, name: str) -> float | None:
        values = [v for v in self.samples.get(name, ()) if v is not None]
        return statistics.fmean(values) if len(values) >= _ENOUGH_SAMPLES else None


def side_of(passport: Passport) -> Side:
    """Read what a passport's machine measured."""
    origin = f"{passport.machine.summary}, recorded {minute(passport.recorded)}"
    label = one_line(passport.label, _LONGEST)
    return Side(
        origin=", ".join(filter(None, (label, origin))),
        machine=passport.machine,
        samples=passport.samples,
        values=dict(_values(passport.trainings, passport.microbenchmarks)),
        jobs={training.title: _job(training) for training in passport.trainings},
        floors=passport.noise_floors,
    )


def _values(
    trainings: Iterable[Training], rates: Iterable[BenchmarkRate]
) -> Iterator[tuple[Key, Value]]:
    for training in trainings:
        step = Value(value=training.seconds, **_shared(training))
        yield (training.title, STEP), step
        for part in training.parts:
            yield (training.title, part.name), _part(step, part)
    for rate in rates:
        value = Value(
            value=rate.rate,
            unit=one_line(rate.unit, 20),
            # A disk that cannot be read past its memory is another measurement.
            task=rate.what if rate.group == "disk" else "",
            **_shared(rate),
        )
        yield ("", rate.name), value


def _shared(measured: Training | BenchmarkRate) -> dict[str, Any]:
    names = ("low", "high", "trials", "missing")
    return {name: getattr(measured, name) for name in names}


def _part(step: Value, part: Part) -> Value:
    """A part: its interval is that of its share, and its step may be off as well."""
    seconds, low, high, speed = part.seconds, part.low, part.high, step.log_speed
    if seconds is None or low is None or high is None or speed is None:
        return Value(trials=step.trials)
    if max(map(abs, (seconds, low, high))) > _MOST_OF_STEP * (step.value or 0.0):
        return Value(trials=step.trials)
    low = seconds - math.hypot(seconds - low, speed[1] * seconds)
    high = seconds + math.hypot(high - seconds, speed[1] * seconds)
    return Value(value=seconds, low=low, high=high, trials=step.trials)


def _job(training: Training) -> dict[str, str]:
    job: dict[str, str | int] = {"batch": training.batch, "dtype": training.dtype}
    job |= training.job
    if training.weights is not None:
        # It shows a network that another Keras builds otherwise.
        job["weights"] = f"{training.weights:,}"
    return {name: str(value) for name, value in job.items()}
