"""What one machine measured, row by row, so that machines can stand side by side."""

import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.text import minute, plain
from perfkit.findings.training import PARTS, UNEXPLAINED, Training
from perfkit.machine.record import Machine
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
_LONGEST = 60
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
        what: What was done, where that differs from machine to machine.
        missing: Why it was not measured, in a sentence; "" where it was.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = "s"
    trials: int = 0
    what: str = ""
    missing: str = ""

    @property
    def log_speed(self) -> tuple[float, float] | None:
        """Logarithm of its speed, and half of its interval; None if unknown.

        That interval holds what another run of the same machine would differ by.
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


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of two machines, or one of a class.

    Attributes:
        label: What its maker calls it.
        summary: The machine on a line.
        recorded: When, to the minute.
        values: What it measured.
        jobs: What each training was, by name, in words.
        step_floor: The noise floor of the trainings; ``rate_floor`` of the parts.
        samples: Its load meanwhile.
    """

    label: str
    summary: str
    recorded: str
    machine: Machine
    values: dict[Key, Value] = field(default_factory=dict)
    jobs: dict[str, dict[str, str]] = field(default_factory=dict)
    step_floor: float | None = None
    rate_floor: float | None = None
    samples: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)

    def floor(self, key: Key) -> float:
        """The noise floor of a row, as a logarithm."""
        floor = self.step_floor if key[0] else self.rate_floor
        return math.log(floor) if floor else 0.0

    @property
    def cores_of_others(self) -> float | None:
        """Cores that other programs kept busy meanwhile; None if unknown."""
        return self._mean("cpu_other")

    @property
    def taken(self) -> float | None:
        """Share of its cores that other programs took; None if unknown.

        Cores that stood idle all the same would have done what others took.
        """
        used, others = self._mean("cpu_trial"), self.cores_of_others
        if not used or others is None:
            return None
        granted = self.machine.cores_granted
        gone = granted - min(granted, max(0.0, self.machine.cores - others))
        idle = max(0.0, granted - gone - used)
        return max(0.0, gone - idle) / granted

    def _mean(self, name: str) -> float | None:
        values = [v for v in self.samples.get(name, ()) if v is not None]
        return statistics.fmean(values) if len(values) >= _ENOUGH_SAMPLES else None


def side_of(document: Document) -> Side:
    """Read what a document measured."""
    label = document.label if isinstance(document, Passport) else ""
    about: dict[str, Any] = {
        "label": plain(label, _LONGEST),
        "summary": plain(document.machine.summary),
        "recorded": minute(document.recorded),
        "machine": document.machine,
        "samples": document.samples,
    }
    if isinstance(document, Passport):
        return Side(
            values=dict(_of_passport(document)),
            jobs={one.title: _job(one) for one in document.trainings},
            step_floor=document.noise_floors.get(TRAININGS),
            rate_floor=document.noise_floors.get(MICROBENCHMARKS),
            **about,
        )
    name = plain(document.training, _LONGEST)
    facts = {n: document.facts[n] for n in _SETTINGS if n in document.facts}
    return Side(
        values=dict(_of_diagnosis(document, name)),
        jobs={name: _in_words(facts)},
        step_floor=document.noise_floor,
        **about,
    )


def _of_passport(passport: Passport) -> Iterator[tuple[Key, Value]]:
    for training in passport.trainings:
        yield (training.title, STEP), _step(training)
        for part in training.parts:
            # The interval is that of the part's share; that of the step comes besides.
            yield (
                (training.title, part.name),
                _part(_step(training), part.seconds, part.low, part.high),
            )
    for rate in passport.microbenchmarks:
        yield ("", plain(rate.name, _LONGEST)), _rate(rate)


def _of_diagnosis(diagnosis: Diagnosis, name: str) -> Iterator[tuple[Key, Value]]:
    step = diagnosis.step
    if step is None or step.median_s <= 0:
        why = "The training as given could not be measured."
        yield (name, STEP), Value(missing=why)
        return
    trials = sum(
        trial.variant == diagnosis.baseline
        and trial.outcome == "completed"
        and not trial.is_try
        for trial in diagnosis.trials
    )
    whole = Value(value=step.median_s, low=step.low, high=step.high, trials=trials)
    yield (name, STEP), whole
    for part in PARTS:
        split = diagnosis.split.get(part)
        if split and part != UNEXPLAINED and split.grade != "not tested":
            value = _part(whole, split.seconds, split.low, split.high)
            yield (name, part), value


def _step(training: Training) -> Value:
    return Value(
        value=training.seconds,
        low=training.low,
        high=training.high,
        trials=training.trials,
        missing=plain(training.missing),
    )


def _part(
    step: Value, seconds: float | None, low: float | None, high: float | None
) -> Value:
    """A part, whose interval holds what its step may be off by."""
    speed = step.log_speed
    if seconds is None or low is None or high is None or speed is None:
        return Value(trials=step.trials)
    if max(map(abs, (seconds, low, high))) > _MOST_OF_STEP * (step.value or 0.0):
        return Value(trials=step.trials)
    off = speed[1] * seconds
    below, above = math.hypot(seconds - low, off), math.hypot(high - seconds, off)
    return Value(
        value=seconds, low=seconds - below, high=seconds + above, trials=step.trials
    )


def _rate(rate: BenchmarkRate) -> Value:
    return Value(
        value=rate.rate,
        low=rate.low,
        high=rate.high,
        unit=plain(rate.unit, 20),
        trials=rate.trials,
        # A disk that cannot be read past its memory is another measurement.
        what=plain(rate.what) if rate.group == "disk" else "",
        missing=plain(rate.missing, 120),
    )


def _job(training: Training) -> dict[str, str]:
    job = _in_words(training.job)
    job |= {"batch": str(training.batch), "dtype": plain(training.dtype, _LONGEST)}
    if training.weights is not None:
        # It shows a network that another Keras builds otherwise.
        job["weights"] = f"{training.weights:,}"
    return job


def _in_words(settings: Mapping[str, object]) -> dict[str, str]:
    return {plain(name, _LONGEST): plain(str(v)) for name, v in settings.items()}
