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

from perfkit import units
from perfkit.errors import PerfkitError
from perfkit.experiments.base import Experiment
from perfkit.experiments.reference_trainings import work
from perfkit.experiments.shared.precision import FLOAT32, seen_here
from perfkit.experiments.shared.reference_jobs import (
    REFERENCES,
    RESIDENTS,
    Reference,
    not_eligible,
)
from perfkit.experiments.shared.words import MORE, failures
from perfkit.findings.record import Finding, Verdict
from perfkit.findings.standing import measurement
from perfkit.findings.training import (
    NEXT_STEPS,
    UNEXPLAINED,
    Part,
    PartName,
    Training,
    seconds_between,
    why_missing,
)
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.tick import REFUSED, Note, Yielded
from perfkit.measure.trial import Trial

_FED = {
    "JPEG": "Fed from JPEG files.",
    "disk": "Fed from a file on the disk, which memory forgets before each pass.",
}
_NOT_TIMED = "The change was not timed."
_MOST_STEPS = 1_000_000
# A part that is surely more of a step than this is what it mostly is.
_MOSTLY = 0.5
# So many are named in a headline.
_NAMED = 3
_COMPARE = "`perfkit passport` keeps this for comparing machines."

# Low end of the interval, the number itself, high end.
Ends = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class ReferenceTrainings(Experiment):
    """Where do fixed trainings spend their time on this machine?"""

    name = "reference-trainings"
    baseline = "small CNN from memory"

    def make_variants(self) -> Mapping[str, Variant]:
        """Each training in full, then each network on a batch that is there."""
        variants = [*map(_in_full, REFERENCES), *map(_resident, RESIDENTS.values())]
        return {variant.name: variant for variant in variants}

    def prepare(self) -> Iterator[Yielded]:
        """Draw the photographs and write what is read from the disk, once."""
        # Before anything computes: it hides the GPUs, which only holds until then.
        hardware = seen_here()
        yield from work.make()
        refused = {
            name: why
            for job in REFERENCES
            if (why := not_eligible(job, hardware))
            for name in (job.variant, job.resident)
        }
        try:
            yield from work.made_on_disk()
        except PerfkitError as error:
            # The other trainings need no disk.
            names = (job.variant for job in REFERENCES if job.feed == "disk")
            refused |= dict.fromkeys(names, str(error).rstrip("."))
        yield Note(REFUSED, refused)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say what each training mostly spends its time on."""
        timed = [one for one in trainings(measured) if one.seconds is not None]
        because = (*map(_sentence, timed), *failures(measured))
        if not timed:
            return Verdict(headline="Nothing could be timed.", because=because)
        largest = [(one, part) for one in timed if (part := mostly(one))]
        if not largest:
            once = max(one.trials for one in timed) < 2
            no_part = "No part is shown to be most of a step."
            return Verdict(
                headline="What these trainings mostly spend time on is not known yet.",
                much="Each ran once." if once else no_part,
                sure="not known yet",
                because=because,
                next=f"{MORE}\n{_COMPARE}",
            )
        # What a reader can do something about comes first.
        largest.sort(key=lambda pair: pair[1].name not in NEXT_STEPS)
        names = list(dict.fromkeys(part.name for _, part in largest))
        headline = "; ".join(
            f"mostly {name}: {_listed([t for t, p in largest if p.name == name])}"
            for name in names
        )
        first, part = largest[0]
        return Verdict(
            headline=f"{headline[0].upper()}{headline[1:]}.",
            much=f"A step of {first.title} takes {units.seconds(first.seconds or 0.0)},"
            f" {seconds_between(part)} of it {part.name}.",
            because=because,
            next="\n".join(
                [*(NEXT_STEPS[name] for name in names if name in NEXT_STEPS), _COMPARE]
            ),
        )


def _in_full(reference: Reference) -> Variant:
    against, changes = "", "Fed from arrays in memory, a call for each step."
    if reference.feed != "memory":
        against, changes = _like(reference), _FED[reference.feed]
    elif reference.dtype != FLOAT32:
        against = _like(reference, dtype=FLOAT32)
        changes = f"Layers compute in {reference.dtype.removeprefix('mixed_')}."
    return Variant(
        reference.variant,
        functools.partial(work.fed, reference),
        changes,
        against,
        code=work.code_of_training(reference, is_fed=True),
    )


def _resident(reference: Reference) -> Variant:
    return Variant(
        reference.resident,
        functools.partial(work.resident, reference),
        "One batch that is there already, instead of a pipeline.",
        _like(reference, feed="memory", dtype=reference.dtype),
        code=work.code_of_training(reference, is_fed=False),
    )


def _like(reference: Reference, feed: str = "memory", dtype: str = FLOAT32) -> str:
    """The variant that trains the same network, fed and computing so."""
    return next(
        job.variant
        for job in REFERENCES
        if (job.model, job.feed, job.dtype) == (reference.model, feed, dtype)
    )


def trainings(measured: Measurement) -> tuple[Training, ...]:
    """Each reference training, with its step taken apart."""
    opened = with_changes(measured)
    return tuple(_training(measured, opened, job) for job in REFERENCES)


def trainings_of(finding: Finding) -> tuple[Training, ...]:
    """The same from a finding alone, which may come from a file."""
    refused = (
        Variant(name, ().__iter__, unavailable=why)
        for name, why in finding.unavailable.items()
    )
    measured = measurement(finding)
    return trainings(replace(measured, variants=(*measured.variants, *refused)))


def with_changes(measured: Measurement) -> Measurement:
    """The measurement with each change as a variant of its own.

    What a change took lies in the pauses of the resident trainings, each of which held
    the steps that a note tells.
    """
    variants, trials = dict[str, Variant](), list[Trial]()
    for trial in measured.trials:
        reference = RESIDENTS.get(trial.variant)
        if reference is None or trial.outcome != "completed":
            continue
        for label, pauses in trial.pauses.items():
            each = 1 if label in (work.ONE, work.ONE_TOGETHER) else reference.batch
            if examples := each * _steps(trial, label):
                name = _change(reference, label)
                variants[name] = Variant(name, ().__iter__)
                trials.append(_as_trial(trial, name, pauses, examples))
    return replace(
        measured,
        variants=(*measured.variants, *variants.values()),
        trials=(*measured.trials, *trials),
    )


def _training(measured: Measurement, opened: Measurement, job: Reference) -> Training:
    # What lasts a moment wavers more than a step, and must not widen its interval.
    timing, (weights, device) = measured.timing(job.variant), _trained(measured, job)
    training = Training(
        name=job.name,
        what=job.what,
        dtype=job.dtype,
        job=job.job,
        batch=job.batch,
        weights=weights,
        device=device,
    )
    if timing is None:
        reasons = (v.unavailable for v in measured.variants if v.name == job.variant)
        why = next(reasons, "")
        missing = why_missing(measured.of(job.variant))
        return replace(training, missing=f"Not tried here: {why}." if why else missing)
    step = timing.seconds(job.batch)
    return replace(
        training,
        seconds=step.value,
        low=step.low,
        high=step.high,
        trials=timing.trials,
        parts=tuple(_parts(opened, job, step.value, device)),
    )


def _parts(
    opened: Measurement, job: Reference, seconds: float, device: str
) -> Iterator[Part]:
    """Where a step of so many seconds goes."""
    copied, alone, many, together = (
        _change(job, label)
        for label in (work.COPIED, work.ONE, work.ONE_TOGETHER, work.TOGETHER)
    )
    on_gpu = opened.timing(copied) is not None
    fed = _saved(opened, job.variant, copied if on_gpu else job.resident, job.batch)
    # On one example it is most of a step; a call is left for every so many steps.
    call = _saved(opened, alone, many, job.many / (job.many - 1))
    compute = _taken(opened, job.variant, together, job.batch) if call else None
    if call and compute:
        low, middle, high = (end - call[1] / job.together for end in compute)
        compute = low, middle, high
    transfer: Ends | None = (0.0, 0.0, 0.0)
    how = "0: the processor computes where the batch lies."
    if on_gpu or device.startswith("GPU"):
        transfer = _saved(opened, copied, job.resident, job.batch)
        how = "A batch in the computer's memory swapped for one on the GPU."
    yield _part("input", fed, "The pipeline swapped for a batch that is there already.")
    change = f"A call for each step swapped for one of {job.many} steps, on one example"
    yield _part("dispatch", call, f"{change}.")
    yield _part("transfer", transfer, how)
    change = f"{job.together} steps in one call on a batch that is there"
    yield _part("compute", compute, f"{change}, less what the call costs.")
    rest, saved = None, _saved(opened, job.resident, together, job.batch)
    if saved and fed and call and transfer and compute:
        left = seconds - math.fsum(part[1] for part in (fed, call, transfer, compute))
        half = math.hypot(saved[2] - saved[0], call[2] - call[0]) / 2
        rest = left - half, left, left + half
    how = "What the parts leave of the step; below 0 where they overlap."
    yield _part(UNEXPLAINED, rest, how, "A part is not known.")


def _part(name: PartName, ends: Ends | None, how: str, why: str = _NOT_TIMED) -> Part:
    low, middle, high = ends or (None, None, None)
    return Part(name=name, seconds=middle, low=low, high=high, how=how if ends else why)


def _taken(opened: Measurement, slow: str, fast: str, examples: float) -> Ends | None:
    """Seconds of a step of the fast variant, at the usual length of the slow one's.

    They come from the rounds that hold both.
    """
    timing, ratio = opened.timing(slow), opened.compare(fast, slow)
    if timing is None or ratio is None:
        return None
    whole = examples / timing.rate
    return whole / ratio.high, whole / ratio.ratio, whole / ratio.low


def _saved(opened: Measurement, slow: str, fast: str, examples: float) -> Ends | None:
    """Seconds of a step of the slow variant that are gone in the fast one."""
    timing, taken = opened.timing(slow), _taken(opened, slow, fast, examples)
    if timing is None or taken is None:
        return None
    low, middle, high = (examples / timing.rate - end for end in reversed(taken))
    return low, middle, high


def _trained(measured: Measurement, job: Reference) -> tuple[int | None, str]:
    """Weights and device as a trial noted them; notes may come from a file."""
    for trial in (*measured.of(job.variant), *measured.of(job.resident)):
        note = trial.notes.get(work.TRAINED)
        if isinstance(note, dict) and isinstance(note.get("weights"), int):
            return note["weights"], str(note.get("device", ""))
    return None, ""


def _change(reference: Reference, label: str) -> str:
    return f"{reference.resident}: {label}"


def _as_trial(
    trial: Trial, name: str, pauses: tuple[float, ...], examples: int
) -> Trial:
    """The pauses of one label as the ticks of a trial."""
    # A rate needs two ticks. Where a trial had time for one change, that counts twice:
    # its doubt is in how trials differ.
    pauses = pauses * 2 if len(pauses) == 1 else pauses
    ends = [math.fsum(pauses[:count]) for count in range(1, len(pauses) + 1)]
    return Trial(
        variant=name,
        round=trial.round,
        outcome="completed",
        started_s=trial.started_s,
        wall_s=trial.wall_s,
        setup_s=trial.setup_s,
        # They were called before the trial was ready; no tick is a first call.
        ticks=((-1.0, 0), (0.0, examples), *((end, examples) for end in ends)),
    )


def _steps(trial: Trial, label: str) -> int:
    note = trial.notes.get(work.STEPS)
    count = note.get(label) if isinstance(note, dict) else None
    return count if isinstance(count, int) and 0 < count < _MOST_STEPS else 0


def _listed(some: list[Training]) -> str:
    if len(some) > _NAMED:
        return f"{len(some)} trainings"
    return ", ".join(training.title for training in some)


def mostly(training: Training) -> Part | None:
    """The part that surely is more than half of a step; None where none is."""
    low, high = training.low, training.high
    if training.seconds is None or low is None or high is None or training.trials < 2:
        return None
    if not units.is_known(low, high):
        return None
    # The interval of a part is that of its share, at the usual length of a step.
    least = _MOSTLY * training.seconds
    parts = (part for part in training.parts if part.name != UNEXPLAINED)
    return next((part for part in parts if (part.low or 0.0) > least), None)


def _sentence(training: Training) -> str:
    """Its step and its parts."""
    parts = ", ".join(
        f"{part.name} {seconds_between(part)}"
        for part in training.parts
        if part.seconds != 0.0 or part.name != "transfer"
    )
    return f"{training.title}: {training.step} a step; {parts}."
