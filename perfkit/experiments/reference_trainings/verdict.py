"""What the reference trainings say in words."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.experiments.reference_trainings.work import (
    COPIED,
    ONE,
    ONE_TOGETHER,
    STEPS,
    TOGETHER,
    TRAINED,
)
from perfkit.experiments.shared.reference_jobs import REFERENCES, RESIDENTS
from perfkit.experiments.shared.words import failures, noise
from perfkit.findings.record import Verdict
from perfkit.findings.standing import measurement
from perfkit.measure.measurement import Arm
from perfkit.measure.trial import Trial
from perfkit.passports import words as passport_words
from perfkit.passports.levels import Levels, how_it_failed
from perfkit.passports.passport import Part, Training

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.experiments.shared.reference_jobs import Reference
    from perfkit.findings.record import Finding
    from perfkit.measure.measurement import Measurement
    from perfkit.passports.passport import PartName


_NO_COPY = "0: the processor computes where the batch lies."
_MOST = 1_000_000


def trainings(measured: Measurement) -> tuple[Training, ...]:
    """Each reference training as a passport holds it."""
    opened = with_swaps(measured)
    # What lasts a moment wavers more than a step, and must not widen its interval.
    steps, levels = Levels(measured), Levels(opened)
    return tuple(_training(opened, steps, levels, one) for one in REFERENCES)


def trainings_of(finding: Finding) -> tuple[Training, ...]:
    """The same from a finding alone, which may come from a file."""
    refused = (
        Arm(name, _nothing, unavailable=why)
        for name, why in finding.unavailable.items()
    )
    measured = measurement(finding)
    return trainings(replace(measured, arms=(*measured.arms, *refused)))


def with_swaps(measured: Measurement) -> Measurement:
    """The measurement with each swap as a variant of its own.

    What a swap took lies in the pauses of the resident trainings, each of which held
    the steps that a note tells.
    """
    arms, trials = dict[str, Arm](), list[Trial]()
    for trial in measured.trials:
        reference = RESIDENTS.get(trial.variant)
        for label, spent in trial.pauses.items() if reference else ():
            steps = _steps(trial, label)
            if reference and steps and trial.outcome == "completed":
                examples = steps * (
                    1 if label in (ONE, ONE_TOGETHER) else reference.batch
                )
                name = _swap(reference, label)
                arms[name] = Arm(name, _nothing)
                trials.append(_as_trial(trial, name, spent, examples))
    return replace(
        measured,
        arms=(*measured.arms, *arms.values()),
        trials=(*measured.trials, *trials),
    )


def _training(
    measured: Measurement, steps: Levels, levels: Levels, reference: Reference
) -> Training:
    level = steps.rate(reference.variant)
    told = _numbers_told(measured, reference)
    training = Training(
        name=reference.name,
        what=reference.what,
        dtype=reference.dtype,
        job=reference.job,
        batch=reference.batch,
        weights=told.get("weights"),
        device=str(told.get("device", "")),
    )
    if level is None:
        return replace(training, missing=_why(measured, reference))
    seconds = reference.batch / level.middle
    return replace(
        training,
        seconds=seconds,
        low=reference.batch / level.high,
        high=reference.batch / level.low,
        trials=level.trials,
        parts=_parts(
            levels, reference, reference.batch / level.middle, training.device
        ),
    )


def _parts(
    levels: Levels, reference: Reference, seconds: float, device: str
) -> tuple[Part, ...]:
    full, resident = reference.variant, reference.resident
    copied = _swap(reference, COPIED)
    on_gpu = levels.rate(copied) is not None
    fed = _saved(levels, "input", full, copied if on_gpu else resident, reference.batch)
    dispatch = _dispatch(levels, reference)
    transfer = Part(name="transfer", seconds=0.0, low=0.0, high=0.0, how=_NO_COPY)
    if on_gpu:
        transfer = _saved(levels, "transfer", copied, resident, reference.batch)
    elif device.startswith("GPU"):
        transfer = Part(name="transfer", how="The swap was not timed.")
    known = (
        _said(fed, "The pipeline swapped for a batch that is there already."),
        dispatch,
        _said(transfer, "A batch in the computer's memory swapped for one on the GPU."),
        _compute(levels, reference, dispatch),
    )
    return (*known, _unexplained(levels, reference, seconds, known))


def _dispatch(levels: Levels, reference: Reference) -> Part:
    """What a call costs, seen on one example: there it is most of a step."""
    one, many = _swap(reference, ONE), _swap(reference, ONE_TOGETHER)
    saved = _saved(levels, "dispatch", one, many, 1)
    how = (
        f"A call for each step swapped for one of {reference.many} steps, on one "
        "example."
    )
    # A call is left for every so many steps.
    return _said(_scaled(saved, reference.many / (reference.many - 1)), how)


def _compute(levels: Levels, reference: Reference, dispatch: Part) -> Part:
    """What is left when all is swapped; in the rounds that hold both, as a share."""
    full, together = reference.variant, _swap(reference, TOGETHER)
    level, ratio = levels.rate(full), levels.ratio(together, full)
    if level is None or ratio is None or dispatch.seconds is None:
        return Part(name="compute", how="The swap was not timed.")
    call = dispatch.seconds / reference.together
    seconds = reference.batch / level.middle
    low, middle, high = (
        seconds / times - call for times in (ratio.high, ratio.middle, ratio.low)
    )
    return Part(
        name="compute",
        seconds=middle,
        low=low,
        high=high,
        how=f"{reference.together} steps in one call on a batch that is there, less "
        "what the call costs.",
    )


def _unexplained(
    levels: Levels, reference: Reference, seconds: float, known: tuple[Part, ...]
) -> Part:
    resident, together = reference.resident, _swap(reference, TOGETHER)
    saved = _saved(levels, "unexplained", resident, together, reference.batch)
    dispatch = next(part for part in known if part.name == "dispatch")
    values = [part.seconds for part in known]
    if saved.seconds is None or None in values:
        return Part(name="unexplained", how="A part is not known.")
    left = seconds - math.fsum(value for value in values if value is not None)
    half = math.hypot(_half(saved), _half(dispatch))
    return Part(
        name="unexplained",
        seconds=left,
        low=left - half,
        high=left + half,
        how="What the parts leave of the step; below 0 where they overlap.",
    )


def _saved(levels: Levels, name: PartName, slow: str, fast: str, batch: int) -> Part:
    """Seconds of a step that a swap saves, from the rounds that hold both."""
    level, ratio = levels.rate(slow), levels.ratio(fast, slow)
    if level is None or ratio is None:
        return Part(name=name)
    seconds = batch / level.middle
    low, middle, high = (
        seconds * (1 - 1 / times) for times in (ratio.low, ratio.middle, ratio.high)
    )
    return Part(name=name, seconds=middle, low=low, high=high)


def _scaled(part: Part, by: float) -> Part:
    if part.seconds is None or part.low is None or part.high is None:
        return part
    return replace(
        part, seconds=part.seconds * by, low=part.low * by, high=part.high * by
    )


def _said(part: Part, how: str) -> Part:
    if part.how:
        return part
    return replace(part, how="The swap was not timed." if part.seconds is None else how)


def _half(part: Part) -> float:
    return (part.high - part.low) / 2 if part.low is not None and part.high else 0.0


def _swap(reference: Reference, label: str) -> str:
    return f"{reference.resident}: {label}"


def _as_trial(
    trial: Trial, name: str, spent: tuple[float, ...], examples: int
) -> Trial:
    """The pauses of one label as the ticks of a trial."""
    # A rate needs two ticks. Where a trial had time for one swap, that counts twice:
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
    told = trial.notes.get(STEPS)
    count = told.get(label) if isinstance(told, dict) else None
    return count if isinstance(count, int) and 0 < count < _MOST else 0


def _numbers_told(measured: Measurement, reference: Reference) -> dict[str, Any]:
    """What a trial told of what it trained; notes may come from a file."""
    for trial in (*measured.of(reference.variant), *measured.of(reference.resident)):
        told = trial.notes.get(TRAINED)
        if isinstance(told, dict) and isinstance(told.get("weights"), int):
            return {"weights": told["weights"], "device": str(told.get("device", ""))}
    return {}


def _why(measured: Measurement, reference: Reference) -> str:
    arm = next((a for a in measured.arms if a.name == reference.variant), None)
    if arm and arm.unavailable:
        return f"Not tried here: {arm.unavailable}."
    return how_it_failed(measured.of(reference.variant))


def _nothing() -> Iterator[int]:
    """The work of a swap that is timed within another trial."""
    yield from ()


# A part that is surely more of a step than this is what it mostly is.
_MOSTLY = 0.5
_NEXT = {
    "input": "`perfkit run data-pipeline` says which way of feeding is fastest here.",
    "dispatch": "`perfkit run execution-mode` says what several steps per call bring.",
    "transfer": "`perfkit doctor` says what holds the link to the GPU back.",
}
_COMPARE = "`perfkit passport` keeps this for comparing machines."


def judge(measured: Measurement) -> Verdict:
    """Say what each training mostly spends its time on."""
    made = [one for one in trainings(measured) if one.seconds is not None]
    if not made:
        return Verdict(headline="Too little was measured to say anything.")
    if max(one.trials for one in made) < 2:
        return Verdict(
            headline="One round: shown, not claimed.",
            because=(*map(_split, made), *failures(measured)),
            next="Give a larger budget: two rounds say more.",
        )
    found = [(one, part) for one in made if (part := mostly(one))]
    said = "; ".join(_headline(one, part) for one, part in found)
    advice = [_NEXT[part.name] for _, part in found if part.name in _NEXT]
    return Verdict(
        headline=f"{said}." if said else "No part is shown to be most of any training.",
        because=(*map(_split, made), *noise(measured), *failures(measured)),
        next="\n".join(dict.fromkeys([*advice, _COMPARE])),
    )


def mostly(training: Training) -> Part | None:
    """The part that surely is more than half of a step; None where none is."""
    return next((part for part in training.parts if _is_most(part, training)), None)


def _is_most(part: Part, training: Training) -> bool:
    # The interval of a part is that of its share, at the usual length of a step.
    if part.low is None or training.seconds is None or training.trials < 2:
        return False
    return part.name != "unexplained" and part.low > _MOSTLY * training.seconds


def _headline(training: Training, part: Part) -> str:
    share = (part.seconds or 0.0) / (training.seconds or 1.0)
    title = passport_words.title(training)
    return f"{title} is mostly {part.name} ({units.percent(share)})"


def _split(training: Training) -> str:
    parts = ", ".join(_verdict_told(training))
    title, step = passport_words.title(training), passport_words.step(training)
    return f"{title}: {step} a step; {parts}."


def _verdict_told(training: Training) -> Iterator[str]:
    for part in training.parts:
        if part.seconds is None:
            yield f"{part.name} not measured"
        elif part.seconds or part.name != "transfer":
            yield f"{part.name} {passport_words.seconds_of(part)}"
