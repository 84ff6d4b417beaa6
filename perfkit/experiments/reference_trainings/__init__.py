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
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.tick import REFUSED, Note, Yielded
from perfkit.measure.trial import Trial
from perfkit.passports import words as passport_words
from perfkit.passports.levels import Levels, how_it_failed
from perfkit.passports.passport import Part, PartName, Training

_FED = {
    "JPEG": "Fed from JPEG files.",
    "disk": "Fed from a file on the disk, which memory forgets before each pass.",
}

# Low end of the interval, the number itself, high end.
Ends = tuple[float, float, float]

_NOT_TIMED = "The change was not timed."
_MOST_STEPS = 1_000_000
# A part that is surely more of a step than this is what it mostly is.
_MOSTLY = 0.5
# What to do about what a training mostly does.
_NEXT = {
    "input": "`perfkit run data-pipeline` says which input pipeline is fastest here.",
    "dispatch": "`perfkit run execution-mode` says what several steps per call bring.",
    "transfer": "`perfkit doctor` says what holds the link to the GPU back.",
}
# So many are named in a headline.
_NAMED = 3
_COMPARE = "`perfkit passport` keeps this for comparing machines."


@dataclass(frozen=True, kw_only=True)
class ReferenceTrainings(Experiment):
    """Where do fixed trainings spend their time on this machine?"""

    name = "reference-trainings"
    notebooks = (
        *("09_two_machines", "11_your_training", "13_two_versions"),
        "14_reading_a_profile",
    )
    baseline = "small CNN from memory"

    def make_variants(self) -> Mapping[str, Variant]:
        """Each training in full, then each network on a batch that is there."""
        variants = [*map(_in_full, REFERENCES), *map(_resident, RESIDENTS.values())]
        return {one.name: one for one in variants}

    def prepare(self) -> Iterator[Yielded]:
        """Draw the photographs and write what is read from the disk, once."""
        # Before anything computes: it hides the GPUs, which only holds until then.
        here = seen_here()
        yield from work.make()
        refused = {
            name: why
            for one in REFERENCES
            if (why := not_eligible(one, here))
            for name in (one.variant, one.resident)
        }
        try:
            yield from work.made_on_disk()
        except PerfkitError as error:
            # The other trainings need no disk.
            why = str(error).rstrip(".")
            names = (one.variant for one in REFERENCES if one.feed == "disk")
            refused |= dict.fromkeys(names, why)
        yield Note(REFUSED, refused)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say what each training mostly spends its time on."""
        made = [one for one in trainings(measured) if one.seconds is not None]
        because = (*map(_in_words, made), *failures(measured))
        if not made:
            return Verdict(headline="Nothing could be timed.", because=because)
        most = [(one, part) for one in made if (part := mostly(one))]
        # What a reader can do something about comes first.
        most.sort(key=lambda pair: pair[1].name not in _NEXT)
        found = {
            part.name: [one for one, of in most if of.name == part.name]
            for _, part in most
        }
        if not found:
            once = max(one.trials for one in made) < 2
            return Verdict(
                headline="What these trainings mostly spend time on is not known yet.",
                much="Each ran once."
                if once
                else "No part is shown to be most of a step.",
                sure="not known yet",
                because=because,
                next=f"{MORE}\n{_COMPARE}",
            )
        headline = "; ".join(
            f"mostly {n}: {_listed(some)}" for n, some in found.items()
        )
        worst, part = most[0]
        seconds = units.seconds(worst.seconds or 0.0)
        return Verdict(
            headline=f"{headline[0].upper()}{headline[1:]}.",
            much=f"A step of {passport_words.title(worst)} takes {seconds}, "
            f"{passport_words.seconds_of(part)} of it {part.name}.",
            because=because,
            next="\n".join(
                [*(_NEXT[name] for name in found if name in _NEXT), _COMPARE]
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
        one.variant
        for one in REFERENCES
        if (one.model, one.feed, one.dtype) == (reference.model, feed, dtype)
    )


def trainings(measured: Measurement) -> tuple[Training, ...]:
    """Each reference training as a passport holds it."""
    opened = with_changes(measured)
    # What lasts a moment wavers more than a step, and must not widen its interval.
    steps, levels = Levels(measured), Levels(opened)
    return tuple(_training(opened, steps, levels, one) for one in REFERENCES)


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
        for label, spent in trial.pauses.items():
            each = 1 if label in (work.ONE, work.ONE_TOGETHER) else reference.batch
            if examples := each * _steps(trial, label):
                name = _change(reference, label)
                variants[name] = Variant(name, ().__iter__)
                trials.append(_as_trial(trial, name, spent, examples))
    return replace(
        measured,
        variants=(*measured.variants, *variants.values()),
        trials=(*measured.trials, *trials),
    )


def _training(
    measured: Measurement, steps: Levels, levels: Levels, one: Reference
) -> Training:
    level, (weights, device) = steps.rate(one.variant), _trained(measured, one)
    training = Training(
        name=one.name,
        what=one.what,
        dtype=one.dtype,
        job=one.job,
        batch=one.batch,
        weights=weights,
        device=device,
    )
    if level is None:
        variant = next((a for a in measured.variants if a.name == one.variant), None)
        why = variant.unavailable if variant else ""
        missing = how_it_failed(measured.of(one.variant))
        return replace(training, missing=f"Not tried here: {why}." if why else missing)
    return replace(
        training,
        seconds=one.batch / level.middle,
        low=one.batch / level.high,
        high=one.batch / level.low,
        trials=level.trials,
        parts=tuple(_parts(levels, one, one.batch / level.middle, device)),
    )


def _parts(
    levels: Levels, one: Reference, seconds: float, device: str
) -> Iterator[Part]:
    """Where a step of so many seconds goes."""
    copied, alone, many, together = (
        _change(one, label)
        for label in (work.COPIED, work.ONE, work.ONE_TOGETHER, work.TOGETHER)
    )
    on_gpu = levels.rate(copied) is not None
    fed = _saved(levels, one.variant, copied if on_gpu else one.resident, one.batch)
    # On one example it is most of a step; a call is left for every so many steps.
    call = _saved(levels, alone, many, one.many / (one.many - 1))
    compute = _taken(levels, one.variant, together, one.batch) if call else None
    if call and compute:
        low, middle, high = (end - call[1] / one.together for end in compute)
        compute = low, middle, high
    transfer: Ends | None = (0.0, 0.0, 0.0)
    how = "0: the processor computes where the batch lies."
    if on_gpu or device.startswith("GPU"):
        transfer = _saved(levels, copied, one.resident, one.batch)
        how = "A batch in the computer's memory swapped for one on the GPU."
    yield _part("input", fed, "The pipeline swapped for a batch that is there already.")
    what = f"A call for each step swapped for one of {one.many} steps, on one example."
    yield _part("dispatch", call, what)
    yield _part("transfer", transfer, how)
    what = (
        f"{one.together} steps in one call on a batch that is there, less what the "
        "call costs."
    )
    yield _part("compute", compute, what)
    rest, saved = None, _saved(levels, one.resident, together, one.batch)
    if saved and fed and call and transfer and compute:
        left = seconds - math.fsum(part[1] for part in (fed, call, transfer, compute))
        half = math.hypot(saved[2] - saved[0], call[2] - call[0]) / 2
        rest = left - half, left, left + half
    what = "What the parts leave of the step; below 0 where they overlap."
    yield _part("unexplained", rest, what, "A part is not known.")


def _part(name: PartName, found: Ends | None, how: str, why: str = _NOT_TIMED) -> Part:
    low, middle, high = found or (None, None, None)
    how = how if found else why
    return Part(name=name, seconds=middle, low=low, high=high, how=how)


def _taken(levels: Levels, slow: str, fast: str, examples: float) -> Ends | None:
    """Seconds of a step of the fast one, at the usual length of the slow one's.

    They come from the rounds that hold both.
    """
    level, ratio = levels.rate(slow), levels.ratio(fast, slow)
    if level is None or ratio is None:
        return None
    whole = examples / level.middle
    return whole / ratio.high, whole / ratio.middle, whole / ratio.low


def _saved(levels: Levels, slow: str, fast: str, examples: float) -> Ends | None:
    """Seconds of a step of the slow one that are gone in the fast one."""
    level, taken = levels.rate(slow), _taken(levels, slow, fast, examples)
    if level is None or taken is None:
        return None
    low, middle, high = (examples / level.middle - end for end in reversed(taken))
    return low, middle, high


def _trained(measured: Measurement, one: Reference) -> tuple[int | None, str]:
    """Weights and device as a trial told them; notes may come from a file."""
    for trial in (*measured.of(one.variant), *measured.of(one.resident)):
        told = trial.notes.get(work.TRAINED)
        if isinstance(told, dict) and isinstance(told.get("weights"), int):
            return told["weights"], str(told.get("device", ""))
    return None, ""


def _change(reference: Reference, label: str) -> str:
    return f"{reference.resident}: {label}"


def _as_trial(
    trial: Trial, name: str, spent: tuple[float, ...], examples: int
) -> Trial:
    """The pauses of one label as the ticks of a trial."""
    # A rate needs two ticks. Where a trial had time for one change, that counts twice:
    # its doubt is in how trials differ.
    spent = spent * 2 if len(spent) == 1 else spent
    ends = [math.fsum(spent[:count]) for count in range(1, len(spent) + 1)]
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
    told = trial.notes.get(work.STEPS)
    count = told.get(label) if isinstance(told, dict) else None
    return count if isinstance(count, int) and 0 < count < _MOST_STEPS else 0


def _listed(some: list[Training]) -> str:
    if len(some) > _NAMED:
        return f"{len(some)} trainings"
    return ", ".join(map(passport_words.title, some))


def mostly(training: Training) -> Part | None:
    """The part that surely is more than half of a step; None where none is."""
    if training.seconds is None or training.trials < 2:
        return None
    # The interval of a part is that of its share, at the usual length of a step.
    least = _MOSTLY * training.seconds
    parts = (part for part in training.parts if part.name != "unexplained")
    return next((part for part in parts if (part.low or 0.0) > least), None)


def _in_words(training: Training) -> str:
    """Its step and its parts, each with its share."""
    title, step = passport_words.title(training), passport_words.step(training)
    parts = ", ".join(
        f"{part.name} {passport_words.seconds_of(part)}"
        for part in training.parts
        if part.seconds != 0.0 or part.name != "transfer"
    )
    return f"{title}: {step} a step; {parts}."
