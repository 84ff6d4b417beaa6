"""What a diagnosis rests on: statements, each with how it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.diagnosis import peak, planning, variables
from perfkit.diagnosis.choosing import AS_GIVEN, CLAIMED, TOGETHER
from perfkit.diagnosis.epochs import EPOCH_END
from perfkit.diagnosis.judging import OF_INPUT
from perfkit.measure.measurement import TWIN
from perfkit.measure.statistics import WORTH_KNOWING
from perfkit.units import is_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.findings.diagnosis import Cause, Diagnosis, Gain
    from perfkit.measure.statistics import Comparison

# What each cause means, after "this training ...:".
MEANINGS = {
    "input-bound": "its input takes time from its steps",
    "serial-map": "its map works on one element at a time",
    "no-prefetch": "no batch is made ready while the model works",
    "no-cache": "each epoch does again what could be kept",
    "python-input": "Python makes its input",
    "slow-read": "reading its files takes its time",
    "host-to-device": "its data take long on their way to the device",
    "eager": "its steps run eagerly instead of as a graph",
    "step-overhead": "it goes back to Python after each step",
    "small-batch": "its batch is small for this machine",
    "retracing": "its step is traced anew again and again",
    "callback": "what watches the training takes its time",
    "validation": "validation takes its time",
    "epoch-boundary": "the end of an epoch takes its time",
    "xla": "its step is not compiled by XLA",
    "precision": "it computes with more bits than it may need",
    "debugging": "what is for debugging is on",
    "threads": "a setting holds it to another number of threads than there are cores",
    "determinism": "it waits so that each run gives the same",
    "float64": "it computes with twice the bits of float32",
    "unrolled": "its recurrent layers are unrolled into one long graph",
    "per-example-map": "a map is called for each example instead of each batch",
    "late-shuffle": "its shuffle is filled with what an expensive map made",
    "padding": "it computes with padding",
    "contention": "other programs take the processor",
    "memory-pressure": "memory is short",
}
# A gain that may hide in what was left open, and would be worth finding.
_MUCH = 1.25
# What showed less than this in its one round may not bring much.
_HOPELESS = 0.97
_MOST_NAMES = 4
# What is left out as a whole, and how it is called.
_GROUPS = {
    "without input": "the input",
    "without observers": "callbacks, metrics, validation and progress bar",
}
# Ends of epochs that differ by so much of a step are worth a word.
_DIFFER = 0.1
_MEASURED = "(measured here)"


def defects(found: Diagnosis) -> list[Cause]:
    """What the training does needlessly, the dearest first."""
    return [cause for cause in found.causes if cause.kind == "defect"]


def opportunities(found: Diagnosis) -> list[Cause]:
    """What the machine could do more, though nothing is wrong."""
    return [cause for cause in found.causes if cause.kind == "opportunity"]


def rounds(found: Diagnosis) -> int:
    """Rounds that the best known comparison rests on."""
    return max((c.rounds for c in found.comparisons), default=0)


def left_open(found: Diagnosis) -> list[str]:
    """Swaps that may still bring much, for all that was measured."""
    claimed = {cause.swap for cause in found.causes} | set(found.aside)
    measured = [
        compared.variant
        for compared in found.comparisons
        if compared.variant not in (*claimed, TOGETHER) and _is_open(compared)
    ]
    return [*measured, *found.unmeasured]


def _is_open(compared: Comparison) -> bool:
    if not compared.is_judged:
        return compared.ratio > _HOPELESS and compared.high > _MUCH
    return compared.verdict == "too noisy to say" and compared.high > _MUCH


def ruled_out(found: Diagnosis) -> list[str]:
    """What no change of a whole group can bring, in half a sentence each."""
    return [
        f"no change of {_GROUPS[compared.variant]} brings more than "
        f"{units.percent(max(0.0, compared.high - 1))}"
        for compared in found.comparisons
        if compared.variant in _GROUPS and compared.high < _MUCH
    ]


def because(found: Diagnosis) -> Iterator[str]:
    """Say what the verdict rests on, a sentence or two each."""
    yield from _step(found)
    yield from _planned(found)
    for cause in found.causes:
        yield f"{cause.cause}, {_kind(cause)}: {cause.evidence} ({cause.grade})"
    yield from _input(found)
    yield from _together(found)
    yield from _ends(found)
    yield from _aside(found)
    yield from _reached(found)
    yield from late(found)
    yield from _failures(found)
    yield from _noise(found)
    yield from _open(found)


def _step(found: Diagnosis) -> Iterator[str]:
    if found.step and not is_known(found.step.low, found.step.high):
        yield f"How long a step takes as given is not known yet {_MEASURED}."
    elif found.step:
        median, low, high = map(
            units.seconds, (found.step.median_s, found.step.low, found.step.high)
        )
        yield f"As given a step takes {median} ({low} to {high}) {_MEASURED}."


def _planned(found: Diagnosis) -> Iterator[str]:
    """What the budget was spent on."""
    if plan := str(found.facts.get(planning.PLAN) or ""):
        yield plan


def _kind(cause: Cause) -> str:
    words = {
        "defect": "a defect",
        "opportunity": "an opportunity, nothing is wrong there",
    }
    return words[cause.kind]


def _input(found: Diagnosis) -> Iterator[str]:
    """The ceiling, and what of it the best change of the input gets back."""
    limit = found.ceiling
    if limit is None:
        return
    gain = f"{units.ratio(limit.estimate)} the rate ({between(limit)})"
    if not (limit.low > 1 and limit.estimate >= max(CLAIMED, found.noise_floor or 1)):
        sure = limit.high < WORTH_KNOWING
        said = (
            "Its input does not hold it up"
            if sure
            else "Whether its input holds it up is open"
        )
        yield f"{said}: without any it runs at {gain} {_MEASURED}."
        return
    said = f"Without any input it runs at {gain} {_MEASURED}: no pipeline brings more."
    best = next((c for c in found.causes if c.cause in OF_INPUT), None)
    if best:
        share = recovered(best.speedup, limit)
        said += (
            f' "{best.swap}" gets back {units.percent(share)} of the time that input '
            "costs."
        )
    yield said


def recovered(gain: Gain, limit: Gain) -> float:
    """Which share of the time that input costs a change of it saves, at most 1."""
    saved, lost = 1 - 1 / gain.estimate, 1 - 1 / limit.estimate
    return min(1.0, max(0.0, saved / lost)) if lost > 0 else 0.0


def _together(found: Diagnosis) -> Iterator[str]:
    if found.together:
        gain = found.together.speedup
        yield (
            f"Together, {listed(found.together.swaps)} run at "
            f"{units.ratio(gain.estimate)} the rate ({between(gain)}); gains do not "
            f"add up {_MEASURED}."
        )


def _ends(found: Diagnosis) -> Iterator[str]:
    """Ends of epochs that differ by much, and what that does to the gains."""
    given = [t for t in found.trials if t.variant in (AS_GIVEN, TWIN)]
    ends = [one for t in given for one in t.pauses.get(EPOCH_END, ())]
    every = [t.recurring[EPOCH_END][0] for t in given if EPOCH_END in t.recurring]
    if not (ends and every and found.step):
        return
    differ_s = (max(ends) - min(ends)) * int(found.facts.get("batch", 1)) / every[0]
    if differ_s > _DIFFER * found.step.median_s:
        yield (
            f"An end of an epoch took {units.seconds(min(ends))} to "
            f"{units.seconds(max(ends))}: a pipeline that is dropped may wait for its "
            "tuning thread, which sleeps. All changes are charged with that alike, so "
            f"one that makes steps faster may bring more than is shown {_MEASURED}."
        )


def _aside(found: Diagnosis) -> Iterator[str]:
    """What changes the learning, and seems to bring more than it does."""
    gains = [
        f'"{c.variant}" runs at {units.ratio(c.ratio)} the rate '
        f"({c.low:.2f} to {c.high:.2f})"
        for c in found.comparisons
        if c.variant in found.aside and is_known(c.low, c.high)
    ]
    if gains:
        yield (
            f"{'; '.join(gains)} {_MEASURED}. This changes what is learnt: mend the "
            "defects first, and look again."
        )


def _reached(found: Diagnosis) -> Iterator[str]:
    reached = peak.known(found.facts)
    if reached is not None:
        yield f"{peak.in_words(reached).rstrip('.')} {_MEASURED}."


def late(found: Diagnosis) -> Iterator[str]:
    """Say which variables the training set too late for TensorFlow to read."""
    names = [str(name) for name in found.facts.get("late") or ()]
    if names:
        yield variables.in_words(names)


def _failures(found: Diagnosis) -> Iterator[str]:
    """How swaps ended that could not be measured, or not always."""
    ended = {
        trial.variant: trial.message or trial.outcome
        for trial in found.trials
        if trial.outcome not in ("completed", "stopped") and trial.variant != AS_GIVEN
    }
    for name, how in ended.items():
        yield f'"{name}" {how.rstrip(".")}.'


def _noise(found: Diagnosis) -> Iterator[str]:
    if found.noise_floor is None:
        yield "The noise floor is unknown: the run was too short to measure it."
        return
    yield (
        f"The noise floor is {units.percent(abs(found.noise_floor - 1))}: what the "
        "training as given differs from itself in this run, and the doubt in that "
        f"{_MEASURED}. No smaller difference is claimed."
    )


def _open(found: Diagnosis) -> Iterator[str]:
    if found.stopped:
        yield "The run was stopped before its budget was spent."
    missing = list(found.unmeasured)
    if names := [name for name in left_open(found) if name not in missing]:
        yield f"Not known yet: {listed(names)}; too little was measured, or too noisy."
    if missing:
        yield f"Not measured in this run, though it may help: {listed(missing)}."


def listed(names: Sequence[str]) -> str:
    """Names in a sentence, the first few of them."""
    quoted = [f'"{name}"' for name in names[:_MOST_NAMES]]
    more = len(names) - len(quoted)
    if more:
        quoted.append(f"{more} more")
    *first, last = quoted
    return f"{', '.join(first)} and {last}" if first else last


def times_as_fast(gain: Gain) -> str:
    """How many times as fast, or that this is not known."""
    if not is_known(gain.low, gain.high):
        return "faster; by how much is not known yet"
    return f"{units.ratio(gain.estimate)} as fast ({between(gain)})"


def between(gain: Gain) -> str:
    """The interval of a gain."""
    return f"95 % interval {gain.low:.2f} to {gain.high:.2f}"
