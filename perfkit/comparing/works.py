"""What a document measured, in one form: jobs with their seconds, and rungs.

A passport holds its reference trainings and its ladder, a finding its variants, a
diagnosis the step of one training. All of it comes from files and is not trusted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perfkit.comparing.record import One
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.rungs import is_ladder
from perfkit.findings.text import plain
from perfkit.measure.measurement import TWIN
from perfkit.passports import gathered, words
from perfkit.passports.record import PARTS, Part, Passport

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perfkit.findings.record import Finding
    from perfkit.machine.record import Machine
    from perfkit.passports.record import RungRate, Training

    Document = Passport | Finding | Diagnosis
    Columns = Mapping[str, tuple[float | None, ...]]

_LADDER, _TRAININGS = "machine-ladder", "reference-trainings"
# Facts of a diagnosis that say what was trained, and not how it went here.
_ASKED = (
    *("model", "parameters", "layers", "data", "batch", "steps", "policy", "element"),
    *("eager", "steps_per_execution", "xla", "metrics", "callbacks", "validation"),
)
_LONGEST = 60


@dataclass(frozen=True, kw_only=True)
class Work:
    """One job as one machine did it.

    Attributes:
        name: Of the job.
        job: What was asked for, by name, in words.
        unit: What ``seconds`` are of.
        seconds: None where it was not measured; ``low`` and ``high`` are the ends of
            the 95 % interval.
        trials: How many it rests on.
        parts: Of the seconds, by name; unexplained is not among them.
        model: Which network, where it is one of perfkit's own.
        dtype: The precision it trains in.
        batch: Examples in a step.
        weights: Numbers that are learnt; None if unknown.
        device: Where it computed; "" if unknown.
        missing: Why it was not measured.
    """

    name: str
    job: dict[str, str]
    unit: str = "step"
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    trials: int = 0
    parts: dict[str, Part] = field(default_factory=dict)
    model: str = ""
    dtype: str = "float32"
    batch: int = 1
    weights: int | None = None
    device: str = ""
    missing: str = ""

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU computed it."""
        return self.device.startswith("GPU")


@dataclass(frozen=True, kw_only=True)
class Held:
    """A document as it is held against another.

    Attributes:
        asked: What the whole of it was asked, by name, in words.
        works: By name.
        rungs: By name.
        floor: The noise floor of the works, ``rungs_floor`` of the rungs.
        drift: By how much all works may be off together, see ``Passport``.
        samples: The machine's load while the works ran.
    """

    one: One
    machine: Machine
    asked: dict[str, str]
    works: dict[str, Work]
    rungs: dict[str, RungRate] = field(default_factory=dict)
    floor: float | None = None
    rungs_floor: float | None = None
    drift: float = 0.0
    samples: dict[str, tuple[float | None, ...]] = field(default_factory=dict)


def held(document: Document) -> Held:
    """Read what a document measured."""
    if isinstance(document, Passport):
        return _of_passport(document)
    if isinstance(document, Diagnosis):
        return _of_diagnosis(document)
    return _of_finding(document)


def _of_passport(passport: Passport) -> Held:
    works = [_of_training(training) for training in passport.trainings]
    return Held(
        one=_one(passport.label, passport.machine, passport.recorded, passport.samples),
        machine=passport.machine,
        asked={"kind": "passport"},
        works={work.name: work for work in works},
        rungs={plain(rung.name, _LONGEST): rung for rung in passport.rungs},
        floor=passport.noise_floors.get(_TRAININGS),
        rungs_floor=passport.noise_floors.get(_LADDER),
        drift=passport.drift.get(_TRAININGS, 0.0),
        samples=during(passport.samples, _when(passport)),
    )


def _of_training(training: Training) -> Work:
    job = {plain(k, _LONGEST): plain(str(v)) for k, v in training.job.items()}
    # How many numbers are learnt shows a network that another Keras builds otherwise.
    known = {} if training.weights is None else {"weights": f"{training.weights:,}"}
    asked = {"batch": str(training.batch), "dtype": plain(training.dtype, _LONGEST)}
    return Work(
        name=words.title(training),
        job=job | asked | known,
        seconds=training.seconds,
        low=training.low,
        high=training.high,
        trials=training.trials,
        parts={
            part.name: part for part in training.parts if part.name != "unexplained"
        },
        model=str(training.job.get("model", "")),
        dtype=training.dtype,
        batch=training.batch,
        weights=training.weights,
        device=training.device,
        missing=plain(training.missing),
    )


def _of_finding(finding: Finding) -> Held:
    told = {plain(k, _LONGEST): plain(str(v)) for k, v in finding.parameters.items()}
    ladder = is_ladder(finding)
    trained = () if ladder else finding.timings
    rates = gathered.rung_rates(finding, ()) if ladder else ()
    works = {
        plain(timing.variant, _LONGEST): Work(
            name=plain(timing.variant, _LONGEST),
            job={},
            unit="example",
            seconds=1 / timing.rate,
            low=1 / timing.high if timing.high > 0 else None,
            high=1 / timing.low if timing.low > 0 else None,
            trials=timing.trials,
        )
        for timing in trained
        if timing.variant != TWIN and timing.rate > 0
    }
    return Held(
        one=_one("", finding.machine, finding.recorded, finding.samples),
        machine=finding.machine,
        asked={"experiment": plain(finding.experiment, _LONGEST)} | told,
        works=works,
        rungs={plain(rung.name, _LONGEST): rung for rung in rates},
        floor=finding.noise_floor,
        rungs_floor=finding.noise_floor,
        samples=finding.samples,
    )


def _of_diagnosis(found: Diagnosis) -> Held:
    name, step = plain(found.training, _LONGEST), found.step
    facts = {word: found.facts[word] for word in _ASKED if word in found.facts}
    asked = {word: plain(str(value)) for word, value in facts.items()}
    seconds = step.median_s if step and step.median_s > 0 else None
    work = Work(
        name=name,
        job=asked,
        seconds=seconds,
        low=step.low if step else None,
        high=step.high if step else None,
        trials=sum(trial.variant == found.baseline for trial in found.trials),
        parts=dict(_parts(found)),
        missing="" if seconds else "The training as given could not be measured.",
    )
    return Held(
        one=_one("", found.machine, found.recorded, found.samples),
        machine=found.machine,
        asked={"training": name},
        works={name: work},
        floor=found.noise_floor,
        samples=found.samples,
    )


def _parts(found: Diagnosis) -> Iterator[tuple[str, Part]]:
    for name in PARTS[:-1]:
        part = found.split.get(name)
        if part is None or part.seconds is None or part.grade == "not tested":
            continue
        yield (
            name,
            Part(
                name=name,
                seconds=part.seconds,
                low=part.low,
                high=part.high,
                how=part.how,
            ),
        )


def _one(label: str, machine: Machine, recorded: str, samples: Columns) -> One:
    return One(
        label=plain(label, _LONGEST),
        summary=plain(machine.summary),
        recorded=plain(recorded[:16].replace("T", " ")),
        cores=machine.cores_granted,
        samples=dict(gathered.thinned(samples)),
    )


def _when(passport: Passport) -> tuple[tuple[float, float], ...]:
    """From when to when the trainings went; () where nobody knows."""
    phase = passport.phases.get(_TRAININGS)
    return passport.visits.get(_TRAININGS) or ((phase,) if phase else ())


def during(
    samples: Columns, spans: tuple[tuple[float, float], ...]
) -> dict[str, tuple[float | None, ...]]:
    """The samples of one measurement; all of them where nobody knows when it was."""
    if not spans:
        return dict(samples)
    times = [(n, t) for n, t in enumerate(samples.get("t", ())) if t is not None]
    picked = [n for n, t in times if any(a <= t <= b for a, b in spans)]
    return {
        name: tuple(values[n] for n in picked if n < len(values))
        for name, values in samples.items()
    }
