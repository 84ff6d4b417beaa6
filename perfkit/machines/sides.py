"""What a machine measured, row by row, and in what it differs from another."""

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from perfkit import units
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.text import minute, one_line
from perfkit.findings.training import PARTS, UNEXPLAINED, Part, Training, seconds
from perfkit.machine.checks import checks
from perfkit.machine.record import Machine, computing
from perfkit.machines.record import BenchmarkRate, Passport
from perfkit.machines.recording import MICROBENCHMARKS, TRAININGS

Document: TypeAlias = Passport | Diagnosis
# The training a row belongs to, "" for a microbenchmark, and which part of it.
Key = tuple[str, str]
# What stands in place of a part in the row of a whole step.
STEP = "step"
# Nothing is done less often or more often in a second; a file may say anything.
_LEAST, _MOST = 1e-9, 1e21
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
_LONGEST, _LONGEST_FACT = 60, 80
# Two readings that are no further apart than this are alike.
_ALIKE = 0.05
# Facts of a diagnosis that say what was trained, and not how it went.
_SETTINGS = (
    *("model", "parameters", "layers", "data", "batch", "steps", "policy", "element"),
    *("eager", "steps_per_execution", "xla", "metrics", "callbacks", "validation"),
)


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
        if not all(_LEAST <= number <= _MOST for number in (low, value, high)):
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
        idle = max(0.0, granted - gone - own_cores)
        return max(0.0, gone - idle) / granted

    def _mean(self, name: str) -> float | None:
        values = [v for v in self.samples.get(name, ()) if v is not None]
        return statistics.fmean(values) if len(values) >= _ENOUGH_SAMPLES else None


def side_of(document: Document) -> Side:
    """Read what a document measured."""
    origin = f"{document.machine.summary}, recorded {minute(document.recorded)}"
    rates: tuple[BenchmarkRate, ...] = ()
    if isinstance(document, Passport):
        label = one_line(document.label, _LONGEST)
        origin = ", ".join(filter(None, (label, origin)))
        trainings, rates = document.trainings, document.microbenchmarks
        floors = document.noise_floors
    else:
        trainings = (_training_of(document),)
        floors = {TRAININGS: document.noise_floor or 1.0}
    return Side(
        origin=origin,
        machine=document.machine,
        samples=document.samples,
        values=dict(_values(trainings, rates)),
        jobs={training.title: _job(training) for training in trainings},
        floors=floors,
    )


def _training_of(diagnosis: Diagnosis) -> Training:
    """The training of a diagnosis as it was given, as a passport holds one."""
    facts, step, split = diagnosis.facts, diagnosis.step, diagnosis.split
    about: dict[str, Any] = {"name": diagnosis.training, "batch": 0}
    about["job"] = {name: facts[name] for name in _SETTINGS if name in facts}
    if step is None or step.median_s <= 0:
        reason = "The training as given could not be measured."
        return Training(**about, missing=reason)
    rounds = (t for t in diagnosis.trials if t.variant == diagnosis.baseline)
    trials = sum(t.outcome == "completed" and not t.is_try for t in rounds)
    parts = tuple(
        Part(name=name, seconds=part.seconds, low=part.low, high=part.high)
        for name in PARTS
        if (part := split.get(name)) and part.grade != "not tested"
        if name != UNEXPLAINED
    )
    about |= {"seconds": step.median_s, "low": step.low, "high": step.high}
    return Training(**about, trials=trials, parts=parts)


def _values(
    trainings: Iterable[Training], rates: Iterable[BenchmarkRate]
) -> Iterator[tuple[Key, Value]]:
    for training in trainings:
        step = Value(
            value=training.seconds,
            low=training.low,
            high=training.high,
            trials=training.trials,
            missing=training.missing,
        )
        yield (training.title, STEP), step
        for part in training.parts:
            yield (training.title, part.name), _part(step, part)
    for rate in rates:
        value = Value(
            value=rate.rate,
            low=rate.low,
            high=rate.high,
            unit=one_line(rate.unit, 20),
            trials=rate.trials,
            # A disk that cannot be read past its memory is another measurement.
            task=rate.what if rate.group == "disk" else "",
            missing=rate.missing,
        )
        yield ("", rate.name), value


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


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing in which two machines differ: what it is on A and on B, in words."""

    name: str
    a: str
    b: str


# Where it stands in a record, by what it is called; "gpu" is the card that computes.
_READINGS = {
    "cores granted": "machine.cores_granted",
    "cores present": "machine.cores",
    "processor": "machine.cpu",
    "GPUs": "gpus",
    "GPU memory": "gpu.memory",
    "link lanes under load": "gpu.link.busy_width",
    "link generation under load": "gpu.link.busy_generation",
    "highest GPU clock": "gpu.clocks.sm_max",
    "GPU slowed by": "gpu.clocks.busy_throttle",
    "instruction sets": "machine.processor.instructions",
    "highest frequency": "machine.processor.frequency_max",
    "memory granted": "machine.memory",
    "file system of the data": "machine.disk.filesystem",
    "cores that other programs kept busy": "others",
    "governor": "machine.processor.governor",
    "energy preference": "machine.processor.preference",
    "on battery": "machine.load.on_battery",
    "TensorFlow build": "machine.software.build",
    "Python": "machine.python",
    "NVIDIA driver": "machine.driver.version",
    "system": "machine.system",
}
_WRITERS: dict[str, Callable[[float], str]] = {
    **dict.fromkeys(("GPU memory", "memory granted"), units.size),
    **dict.fromkeys(
        ("highest GPU clock", "highest frequency"),
        functools.partial(units.rate, unit="Hz"),
    ),
}
# Of the versions, those of what does the work come first.
_FIRST = ("tensorflow", "keras", "numpy")
_ILL = ("fail", "warn")


def differing_facts(a: Side, b: Side) -> tuple[Fact, ...]:
    """In what two machines differ; what one of them does not tell is no difference."""
    readings = _readings(a), _readings(b)
    facts = [_fact(name, *(side[name] for side in readings)) for name in _READINGS]
    for names, absent in (("environment", "not set"), ("versions", "not installed")):
        entries = [getattr(side.machine, names) for side in (a, b)]
        facts += (
            _fact(name, *(side.get(name, absent) for side in entries))
            for name in dict.fromkeys((*_FIRST, *entries[0], *entries[1]))
        )
    return tuple(fact for fact in facts if fact)


def _readings(side: Side) -> dict[str, Any]:
    """What a machine's record tells, by name; None where it does not."""
    machine, readings = side.machine, dict[str, Any]()
    roots = {
        "machine": machine,
        "gpu": computing(machine.gpus, machine.environment)[1],
        "gpus": ", ".join(gpu.name for gpu in machine.gpus[:8]) or "none",
        "others": side.cores_of_others,
    }
    for name, where in _READINGS.items():
        root, *attributes = where.split(".")
        readings[name] = roots[root]
        for attribute in attributes:
            record = readings[name]
            readings[name] = None if record is None else getattr(record, attribute)
    return readings


def _fact(name: str, a: Any, b: Any) -> Fact | None:
    if a is None or b is None or a == b:
        return None
    if isinstance(a, tuple):
        # Of two lists what only one of them holds.
        a, b = (" ".join(sorted({*x} - {*y})) or "no more" for x, y in ((a, b), (b, a)))
    elif isinstance(a, bool):
        a, b = ("yes" if value else "no" for value in (a, b))
    elif isinstance(a, int | float):
        if abs(a - b) <= _ALIKE * max(abs(a), abs(b)):
            return None
        a, b = map(_WRITERS.get(name, units.significant), (a, b))
    return Fact(name=name, a=one_line(a, _LONGEST_FACT), b=one_line(b, _LONGEST_FACT))


def remedies(a: Side, b: Side) -> Iterator[str]:
    """What the doctor finds on one of the two alone, and what to do, a sentence each.

    The checks are made anew from the records: no words of a file are advice.
    """
    ill = [
        {c.title: c.remedy for c in checks(side.machine) if c.status in _ILL}
        for side in (a, b)
    ]
    for name, mine, theirs in (("A", ill[0], ill[1]), ("B", ill[1], ill[0])):
        for title, remedy in mine.items():
            if title not in theirs and remedy:
                yield f"On {name}: {title}. {remedy}"
