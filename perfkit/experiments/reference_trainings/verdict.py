"""What the reference trainings say in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.reference_trainings.numbers import trainings
from perfkit.experiments.shared.words import failures, noise
from perfkit.findings.record import Verdict
from perfkit.machines import passport_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machines.passport import Part, Training
    from perfkit.measure.measurement import Measurement

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
    parts = ", ".join(_told(training))
    title, step = passport_words.title(training), passport_words.step(training)
    return f"{title}: {step} a step; {parts}."


def _told(training: Training) -> Iterator[str]:
    for part in training.parts:
        if part.seconds is None:
            yield f"{part.name} not measured"
        elif part.seconds or part.name != "transfer":
            yield f"{part.name} {passport_words.seconds_of(part)}"
