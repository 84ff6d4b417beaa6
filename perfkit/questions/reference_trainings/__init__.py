"""Where do fixed trainings spend their time on this machine?

The suspect: the same training is fast on another machine; something here is not.
The test: train the same few jobs everywhere and take each step apart by changes: a
batch that is there already (input), several steps in one call (dispatch), a batch that
need not be copied (transfer). What remains is arithmetic, and what the changes leave
open is shown as unexplained.
"""

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.statistics import Estimate
from perfkit.engine.tick import REFUSED, Note, Yielded
from perfkit.engine.trial import Trial
from perfkit.findings.reading import note_as
from perfkit.findings.record import Fact, Verdict
from perfkit.findings.text import as_sentence
from perfkit.findings.training import (
    UNEXPLAINED,
    Part,
    PartName,
    Training,
    seconds,
    why_missing,
)
from perfkit.questions.base import Experiment
from perfkit.questions.reference_trainings import work
from perfkit.questions.reference_trainings.work import (
    REFERENCES,
    RESIDENTS,
    Reference,
    not_eligible,
)
from perfkit.questions.shared.precision import FLOAT32, seen_here
from perfkit.questions.shared.words import fact, failures

_FED = {
    "memory": "Fed from arrays in memory, a call for each step.",
    "JPEG": "Fed from JPEG files.",
    "disk": "Fed from a file on the disk, which memory forgets before each pass.",
}
# What all others of a network go back to: float32, fed from memory.
_BASES = {
    job.model: job.variant
    for job in REFERENCES
    if (job.feed, job.dtype) == ("memory", FLOAT32)
}
_MOST_STEPS = 1_000_000
_NOT_TIMED = "The change was not timed."
# Low end of the interval, the number itself, high end.
Ends = tuple[float, float, float]


@dataclass(frozen=True)
class Trainings:
    """The reference trainings of one run."""

    trainings: tuple[Training, ...]


@dataclass(frozen=True, kw_only=True)
class ReferenceTrainings(Experiment):
    """Where do fixed trainings spend their time on this machine?"""

    name = "reference-trainings"
    baseline = "small CNN from memory"

    def make_variants(self) -> Mapping[str, Variant]:
        """Each training in full, then each network on a batch that is there."""
        variants = dict[str, Variant]()
        for job in REFERENCES:
            does, base = _FED[job.feed], _BASES[job.model]
            if job.dtype != FLOAT32:
                does = f"Layers compute in {job.dtype.removeprefix('mixed_')}."
            variants[job.variant] = Variant(
                job.variant,
                functools.partial(work.fed, job),
                does,
                base if base != job.variant else "",
            )
        for name, job in RESIDENTS.items():
            variants[name] = Variant(
                name,
                functools.partial(work.resident, job),
                "One batch that stays in memory, instead of a pipeline.",
                job.variant,
            )
        return variants

    def prepare(self) -> Iterator[Yielded]:
        """Draw the photographs and write what is read from the disk, once."""
        # Before anything computes: it hides the GPUs, which only holds until then.
        hardware = seen_here()
        no_disk = yield from work.make()
        refused = dict[str, str]()
        for job in REFERENCES:
            if reason := not_eligible(job, hardware):
                refused |= {job.variant: reason, job.resident: reason}
            elif job.feed == "disk" and no_disk:
                refused[job.variant] = no_disk
        yield Note(REFUSED, refused)

    def result(self, measured: Measurement) -> Trainings:
        """Each training, with its step taken apart."""
        return Trainings(trainings(measured))

    def verdict(self, measured: Measurement) -> Verdict:
        """Say of each training how long a step takes, and where that goes."""
        jobs = [t for t in self.result(measured).trainings if t.seconds is not None]
        because = failures(measured)
        if not jobs:
            return Verdict(headline="Nothing could be timed.", because=because)
        facts = list[Fact]()
        for job in jobs:
            facts.append(_row(f"{job.title}: a step", job))
            facts += [_row(f"{job.title}: {part.name}", part) for part in job.parts]
        return Verdict(
            headline=f"{len(jobs)} trainings were timed, and their steps taken apart.",
            facts=tuple(facts),
            because=because,
            next="`perfkit passport` keeps this for comparing machines.",
        )


def _row(label: str, timing: Training | Part) -> Fact:
    if timing.seconds is None or timing.low is None or timing.high is None:
        return Fact(label, "not measured")
    ends = Estimate(value=timing.seconds, low=timing.low, high=timing.high)
    return fact(label, ends, seconds)


def trainings(
    measured: Measurement, refused: Mapping[str, str] | None = None
) -> tuple[Training, ...]:
    """Each reference training, with its step taken apart.

    ``refused`` says why variants were not tried, by name.
    """
    opened = _with_changes(measured)
    return tuple(_training(measured, opened, job, refused or {}) for job in REFERENCES)


def _with_changes(measured: Measurement) -> Measurement:
    """The measurement with each change as a variant of its own.

    What a change took lies in the pauses of the resident trainings, each of which held
    the steps that a note tells.
    """
    variants, trials = dict[str, Variant](), list[Trial]()
    for trial in measured.trials:
        job = RESIDENTS.get(trial.variant)
        if job is None or trial.outcome != "completed":
            continue
        steps = note_as(dict[str, int], trial.notes.get(work.STEPS)) or {}
        for label, pauses in trial.pauses.items():
            count = steps.get(label, 0)
            if 0 < count < _MOST_STEPS:
                per_step = 1 if label in (work.ONE, work.ONE_TOGETHER) else job.batch
                name = _change(job, label)
                variants[name] = Variant(name, ().__iter__)
                trials.append(_as_trial(trial, name, pauses, per_step * count))
    return replace(
        measured,
        variants=(*measured.variants, *variants.values()),
        trials=(*measured.trials, *trials),
    )


def _change(job: Reference, label: str) -> str:
    return f"{job.resident}: {label}"


def _as_trial(
    trial: Trial, name: str, pauses: tuple[float, ...], examples: int
) -> Trial:
    """The pauses of one label as the ticks of a trial."""
    # A rate needs two ticks. Where a trial had time for one change, that counts twice:
    # its doubt is in how trials differ.
    pauses = pauses * 2 if len(pauses) == 1 else pauses
    ends = [math.fsum(pauses[:count]) for count in range(1, len(pauses) + 1)]
    # They were called before the trial was ready; no tick is a first call.
    ticks = ((-1.0, 0), (0.0, examples), *((end, examples) for end in ends))
    nothing: dict[str, Any] = {"turns": (), "pauses": {}, "parts": {}, "notes": {}}
    return replace(trial, variant=name, ticks=ticks, recurring={}, **nothing)


def _training(
    measured: Measurement,
    opened: Measurement,
    job: Reference,
    refused: Mapping[str, str],
) -> Training:
    # What lasts a moment wavers more than a step, and must not widen its interval.
    timing, (weights, device) = measured.timing(job.variant), _trained(measured, job)
    names = ("name", "dtype", "job", "batch")
    about: dict[str, Any] = {name: getattr(job, name) for name in names}
    about |= {"what": job.description, "weights": weights, "device": device}
    if timing is None:
        cause = refused.get(job.variant)
        ended = why_missing(measured.trials_of(job.variant))
        return Training(**about, missing=as_sentence(cause) if cause else ended)
    step = timing.seconds(job.batch)
    parts = tuple(_parts(opened, job, step.value, device))
    about |= {"seconds": step.value, "low": step.low, "high": step.high}
    return Training(**about, trials=timing.trials, parts=parts)


def _trained(measured: Measurement, job: Reference) -> tuple[int | None, str]:
    """Weights and device as a trial noted them; notes may come from a file."""
    for trial in (*measured.trials_of(job.variant), *measured.trials_of(job.resident)):
        note = trial.notes.get(work.TRAINED)
        if isinstance(note, dict) and isinstance(note.get("weights"), int):
            return note["weights"], str(note.get("device", ""))
    return None, ""


def _parts(
    opened: Measurement, job: Reference, step_s: float, device: str
) -> Iterator[Part]:
    """Where a step of so many seconds goes."""
    labels = (work.COPIED, work.ONE, work.ONE_TOGETHER, work.TOGETHER)
    copied, alone, many, together = (_change(job, label) for label in labels)
    on_gpu = opened.timing(copied) is not None
    fed = _saved(opened, job.variant, copied if on_gpu else job.resident, job.batch)
    # On one example it is most of a step; a call is left for every so many steps.
    call = _saved(opened, alone, many, job.many / (job.many - 1))
    compute = _step_s(opened, job.variant, together, job.batch) if call else None
    if call and compute:
        low, middle, high = (end - call[1] / job.together for end in compute)
        compute = low, middle, high
    transfer: Ends | None = (0.0, 0.0, 0.0)
    way = "0: the processor reads the batch where it is."
    if on_gpu or device.startswith("GPU"):
        transfer = _saved(opened, copied, job.resident, job.batch)
        way = "A batch in the computer's memory swapped for one on the GPU."
    yield _part("input", fed, "The pipeline swapped for a batch that is there already.")
    change = f"A call for each step swapped for one of {job.many} steps, on one example"
    yield _part("dispatch", call, f"{change}.")
    yield _part("transfer", transfer, way)
    change = f"{job.together} steps in one call on a batch that is there"
    yield _part("compute", compute, f"{change}, less what the call costs.")
    remainder, saved = None, _saved(opened, job.resident, together, job.batch)
    if saved and fed and call and transfer and compute:
        gap = step_s - math.fsum(part[1] for part in (fed, call, transfer, compute))
        half = math.hypot(saved[2] - saved[0], call[2] - call[0]) / 2
        remainder = gap - half, gap, gap + half
    way = "The step less the other parts; below 0 if they overlap."
    yield _part(UNEXPLAINED, remainder, way)


def _part(name: PartName, ends: Ends | None, way: str) -> Part:
    if ends is None:
        lack = "A part is not known." if name == UNEXPLAINED else _NOT_TIMED
        return Part(name=name, how=lack)
    low, value, high = ends
    return Part(name=name, seconds=value, low=low, high=high, how=way)


def _step_s(opened: Measurement, slow: str, fast: str, examples: float) -> Ends | None:
    """Seconds of a step of the fast variant, at the usual length of the slow one's.

    They come from the rounds that hold both.
    """
    timing, ratio = opened.timing(slow), opened.compare(fast, slow)
    if timing is None or ratio is None:
        return None
    step_s = examples / timing.rate
    return step_s / ratio.high, step_s / ratio.ratio, step_s / ratio.low


def _saved(opened: Measurement, slow: str, fast: str, examples: float) -> Ends | None:
    """Seconds of a step of the slow variant that are gone in the fast one."""
    timing, ends = opened.timing(slow), _step_s(opened, slow, fast, examples)
    if timing is None or ends is None:
        return None
    low, middle, high = (examples / timing.rate - end for end in reversed(ends))
    return low, middle, high
