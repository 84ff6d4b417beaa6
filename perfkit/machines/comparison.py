"""Two machines held against each other: the record of it, and what both measured."""

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from perfkit.charts.figure import Figure
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.reading import note_as
from perfkit.findings.record import Finding
from perfkit.findings.report import Report, Shown, in_html
from perfkit.findings.standing import has_microbenchmarks
from perfkit.findings.tables import frame
from perfkit.findings.text import minute, plain
from perfkit.machine.record import Machine
from perfkit.machines.ratios import BenchmarkRatio, Differs, MachineDiffers, Ratio, Side
from perfkit.measure.measurement import CONTROL
from perfkit.measure.statistics import Comparing
from perfkit.passports import levels
from perfkit.passports import words as passport_words
from perfkit.passports.passport import (
    PARTS,
    BenchmarkRate,
    Part,
    Passport,
    Training,
    in_short,
)

if TYPE_CHECKING:
    from pandas import DataFrame

Columns = Mapping[str, tuple[float | None, ...]]
Document = Passport | Finding | Diagnosis
SCHEMA: Final = 2
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
        predicted: B's seconds as the microbenchmarks let expect them from A's; None if
            they do not.
        microbenchmarks: Those that stand for it.
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
    microbenchmarks: tuple[str, ...] = ()
    why: str = ""

    @property
    def claimed(self) -> bool:
        """Whether it is shown to be part of the difference."""
        return self.name != UNEXPLAINED and (self.share_low or 0.0) > 0


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """What the microbenchmarks let expect of B's step, from A's."""

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
        predicted: None where microbenchmarks are missing.
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
    def a_unit(self) -> str:
        """What its seconds are of, with an article."""
        return f"{'an' if self.unit == 'example' else 'a'} {self.unit}"

    @property
    def claimed(self) -> bool:
        """Whether B is shown to be faster or slower."""
        return bool(self.slower)

    @property
    def slower(self) -> Side:
        """The machine that is shown to be slower."""
        sides: dict[str, Side] = {"slower": "B", "faster": "A"}
        return sides.get(self.speed.verdict, "") if self.speed else ""

    @property
    def causes(self) -> tuple[Change, ...]:
        """The parts that are shown to make the difference, the largest first."""
        found = [one for one in self.changes if one.claimed]
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
        parts: The parts of that step that it bears on.
    """

    title: str
    remedy: str
    seconds: float
    of: str
    parts: tuple[str, ...] = ()


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
class Explanation(Shown):
    """Why the same training runs differently on two machines.

    Attributes:
        verdict: What is shown, as a word.
        headline: It in a sentence.
        because: What it rests on, a sentence each.
        job: In what the jobs differ; with that alone there is no verdict on speed.
        differences: Of the machines, what matters most first.
        microbenchmarks: Each part of the machines.
        works: Each job, as both did it.
        advice: For the slower machine, what could explain most first.
        next: Which measurement says more, a sentence each.
        guess: What the reader expected; "" if nothing.
    """

    schema: Literal[2] = SCHEMA
    kind: Literal["explanation"] = "explanation"
    a: One
    b: One
    verdict: Said
    headline: str
    because: tuple[str, ...] = ()
    job: tuple[Differs, ...] = ()
    differences: tuple[MachineDiffers, ...] = ()
    microbenchmarks: tuple[BenchmarkRatio, ...] = ()
    works: tuple[Explained, ...] = ()
    advice: tuple[Advice, ...] = ()
    next: tuple[str, ...] = ()
    guess: str = ""

    @property
    def main(self) -> Explained | None:
        """The job that the headline tells of: where the difference is largest."""
        return largest(self.works)

    @functools.cached_property
    def charts(self) -> dict[str, Figure]:
        """Its pictures, by what they show."""
        from perfkit.machines.comparison_charts import pictures

        return pictures(self)

    def table(self) -> "DataFrame":
        """One row per job and part: seconds on both, their change and its share."""
        return frame([row for work in self.works for row in _rows(work)], _COLUMNS)

    def to_json(self) -> str:
        """All of it as JSON, the samples of both machines included."""
        return in_short(self)

    def export(self, path: str | Path) -> Path:
        """Write all of it as one HTML page that needs no network.

        Raises:
            BadFileError: It cannot be written.
            BadParameterError: ``path`` is no place for a page.
        """
        from perfkit.export.page import save
        from perfkit.machines.comparison_report import page

        return save(path, lambda: page(self))

    @property
    def report(self) -> Report:
        """What a person reads of it."""
        from perfkit.machines.comparison_report import report

        return report(self)

    def _repr_html_(self) -> str:
        charts = "".join(figure.in_page() for figure in self.charts.values())
        return in_html(self.report, figure=charts)


_COLUMNS = (
    *("work", "part", "a", "b", "change", "low", "high"),
    *("share", "share_low", "share_high", "predicted", "microbenchmarks", "why"),
)


def _rows(work: Explained) -> Iterator[dict[str, Any]]:
    """The job as a whole, as the part ``"all"``, then its parts."""
    told = work.predicted.seconds if work.predicted else None
    change = None if work.a is None or work.b is None else work.b - work.a
    whole = {"a": work.a, "b": work.b, "change": change, "predicted": told}
    yield {"work": work.name, "part": "all", "why": work.missing} | whole
    for one in work.changes:
        fields = vars(one) | {"microbenchmarks": ", ".join(one.microbenchmarks)}
        yield {"work": work.name, "part": one.name} | fields


_MICROBENCHMARKS, _TRAININGS = "machine-ladder", "reference-trainings"
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
        rates: Of the microbenchmarks, by name.
        floor: The noise floor of the works; ``rates_floor`` of the rates.
        drift: By how much all works may be off together, see ``Passport``.
        samples: The machine's load while the works ran.
    """

    one: One
    machine: Machine
    asked: dict[str, str] = field(default_factory=dict)
    works: dict[str, Work] = field(default_factory=dict)
    rates: dict[str, BenchmarkRate] = field(default_factory=dict)
    floor: float | None = None
    rates_floor: float | None = None
    drift: float = 0.0
    samples: dict[str, tuple[float | None, ...]] = field(default_factory=dict)


def held(document: Document) -> Held:
    """Read what a document measured."""
    label = document.label if isinstance(document, Passport) else ""
    one = One(
        label=plain(label, _LONGEST),
        summary=plain(document.machine.summary),
        recorded=minute(document.recorded),
        cores=document.machine.cores_granted,
        samples=dict(levels.thinned(document.samples)),
    )
    made = Held(one=one, machine=document.machine, samples=document.samples)
    if isinstance(document, Passport):
        return _of_passport(document, made)
    if isinstance(document, Diagnosis):
        return _of_diagnosis(document, made)
    return _of_finding(document, made)


def _of_passport(passport: Passport, made: Held) -> Held:
    works = [_of_training(training) for training in passport.trainings]
    # From when to when the trainings went; () where nobody knows.
    phase = passport.phases.get(_TRAININGS)
    spans = passport.visits.get(_TRAININGS) or ((phase,) if phase else ())
    return replace(
        made,
        asked={"kind": "passport"},
        works={work.name: work for work in works},
        rates={plain(r.name, _LONGEST): r for r in passport.microbenchmarks},
        floor=passport.noise_floors.get(_TRAININGS),
        rates_floor=passport.noise_floors.get(_MICROBENCHMARKS),
        drift=passport.drift.get(_TRAININGS, 0.0),
        samples=_during(passport.samples, spans),
    )


def _of_training(training: Training) -> Work:
    job = _in_words(training.job)
    job |= {"batch": str(training.batch), "dtype": plain(training.dtype, _LONGEST)}
    if training.weights is not None:
        # It shows a network that another Keras builds otherwise.
        job["weights"] = f"{training.weights:,}"
    return Work(
        name=passport_words.title(training),
        job=job,
        seconds=training.seconds,
        low=training.low,
        high=training.high,
        trials=training.trials,
        parts={one.name: one for one in training.parts if one.name != UNEXPLAINED},
        model=str(training.job.get("model", "")),
        dtype=training.dtype,
        batch=training.batch,
        weights=training.weights,
        device=training.device,
        missing=plain(training.missing),
    )


def _in_words(told: Mapping[str, object]) -> dict[str, str]:
    return {plain(name, _LONGEST): plain(str(value)) for name, value in told.items()}


def _of_finding(finding: Finding, made: Held) -> Held:
    asked = {"experiment": plain(finding.experiment, _LONGEST)}
    made = replace(
        made,
        asked=asked | _in_words(finding.parameters),
        floor=finding.noise_floor,
        rates_floor=finding.noise_floor,
    )
    if has_microbenchmarks(finding):
        rates = levels.benchmark_rates(finding, ())
        return replace(made, rates={plain(one.name, _LONGEST): one for one in rates})
    works = [
        Work(
            name=plain(timing.variant, _LONGEST),
            job={},
            unit="example",
            seconds=1 / timing.rate,
            low=1 / timing.high if timing.high > 0 else None,
            high=1 / timing.low if timing.low > 0 else None,
            trials=timing.trials,
        )
        for timing in finding.timings
        if timing.variant != CONTROL and timing.rate > 0
    ]
    return replace(made, works={work.name: work for work in works})


def _of_diagnosis(found: Diagnosis, made: Held) -> Held:
    name, step = plain(found.training, _LONGEST), found.step
    seconds = step.median_s if step and step.median_s > 0 else None
    parts = {name: found.split.get(name) for name in PARTS[:-1]}
    # What TensorFlow sees counts; a machine may have a GPU that it cannot use.
    pipeline = note_as(dict[str, Any], found.facts.get("pipeline")) or {}
    on_gpu = pipeline.get("gpus", len(found.machine.gpus))
    work = Work(
        name=name,
        job=_in_words({n: found.facts[n] for n in _ASKED if n in found.facts}),
        seconds=seconds,
        low=step.low if step else None,
        high=step.high if step else None,
        trials=sum(
            trial.variant == found.baseline
            and trial.outcome == "completed"
            and not trial.is_try
            for trial in found.trials
        ),
        parts={
            name: Part(
                name=name,
                seconds=one.seconds,
                low=one.low,
                high=one.high,
                how=one.how,
            )
            for name, one in parts.items()
            if one and one.seconds is not None and one.grade != "not tested"
        },
        device="GPU:0" if on_gpu else "CPU:0" if "gpus" in pipeline else "",
        missing="" if seconds else "The training as given could not be measured.",
    )
    return replace(
        made, asked={"training": name}, works={name: work}, floor=found.noise_floor
    )


def _during(
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
