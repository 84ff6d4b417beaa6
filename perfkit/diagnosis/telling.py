"""A diagnosis in words: what slows the training, on what that rests, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.diagnosis import choosing, split, variables
from perfkit.diagnosis.choosing import AS_GIVEN, CLAIMED, TOGETHER
from perfkit.diagnosis.epochs import EPOCH_END
from perfkit.diagnosis.judging import OF_INPUT
from perfkit.findings.record import Verdict
from perfkit.measure.measurement import TWIN
from perfkit.measure.statistics import WORTH_KNOWING
from perfkit.units import is_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.findings.diagnosis import Cause, Diagnosis, Gain
    from perfkit.measure.measurement import Measurement
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


def what_is_ruled_out(found: Diagnosis) -> list[str]:
    """What no change of a whole group can bring, in half a sentence each."""
    return [
        f"no change of {_GROUPS[compared.variant]} brings {_at_most(compared)}"
        for compared in found.comparisons
        if compared.variant in _GROUPS and compared.high < _MUCH
    ]


def _at_most(compared: Comparison) -> str:
    if compared.high <= 1:
        return "anything"
    return f"more than {units.percent(compared.high - 1)}"


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
    if plan := str(found.facts.get(choosing.PLAN) or ""):
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
    reached = split.known(found.facts)
    if reached is not None:
        yield f"{split.in_words(reached).rstrip('.')} {_MEASURED}."


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


_REMEDIES = {
    "out-of-memory": "Make the batch smaller, or free memory; then diagnose again.",
    "timed-out": "Train it alone for a minute: see whether its data ever come, and "
    "whether its first step ever ends.",
    "crashed": "Call the function and model.fit in a process of its own, and mend what "
    "that says.",
    "completed": "Give it a larger budget.",
    "stopped": "Diagnose again, and let it run until the first round is over.",
}
_MOST_FIXES = 3


def told(found: Diagnosis) -> Verdict:
    """Say in words what a diagnosis says in numbers; its own words are not read."""
    if found.step is None:
        return Verdict(
            headline=_unmeasured(found),
            because=tuple(late(found)),
            next=_REMEDIES.get(found.outcome, _REMEDIES["completed"]),
        )
    return Verdict(
        headline=_applied(found) or _headline(found),
        because=tuple(because(found)),
        next="\n".join(_next(found)),
    )


def outcome(measured: Measurement) -> str:
    """How the training as given ended, at best."""
    ended = [trial.outcome for trial in measured.of(AS_GIVEN)]
    if "completed" in ended or not ended:
        return "completed"
    return ended[-1]


def _applied(found: Diagnosis) -> str:
    """What chosen swaps brought, where nothing else was looked for."""
    if len(found.comparisons) != 1 or found.ceiling or found.unmeasured:
        return ""
    (compared,) = found.comparisons
    if found.together and compared.variant == TOGETHER:
        what = f"{listed(found.together.swaps)}, applied together"
    else:
        what = f'"{compared.variant}", applied alone'
    if not (compared.is_judged and is_known(compared.low, compared.high)):
        return f"{what}: what that brings is not known yet."
    return (
        f"{what}: {compared.judgement}, {units.ratio(compared.ratio)} the rate of the "
        "training as given (95 % interval "
        f"{compared.low:.2f} to {compared.high:.2f})."
    )


def _headline(found: Diagnosis) -> str:
    wrong = defects(found)
    if wrong:
        return _slowed(wrong)
    still_open, ruled_out = left_open(found), what_is_ruled_out(found)
    if still_open:
        known = f": {' and '.join(ruled_out)}" if ruled_out else ""
        return (
            f"No defect is shown in this training so far{known}. Not known yet: "
            f"{listed(still_open)}; the run was too short or too noisy."
        )
    if not rounds(found):
        return (
            "Nothing was swapped: there is nothing in this training that perfkit can "
            "change by itself; why stands under what was not tested."
        )
    return _healthy(found)


def _slowed(wrong: Sequence[Cause]) -> str:
    """The worst defect, and those that may be as bad."""
    worst, *others = wrong
    gain = times_as_fast(worst.speedup)
    if worst.cause == "input-bound":
        return (
            "Its input takes time from its steps: without any, this training would run "
            f"{gain}, and no change that was measured is shown to explain that"
            f"{_as_bad(worst, others)}."
        )
    means = f" ({MEANINGS[worst.cause]})" if worst.cause in MEANINGS else ""
    # What no swap takes away was not run without, only worked out.
    how = f'with "{worst.swap}" it runs' if worst.swap else "without that it would run"
    limit = next((one for one in others if one.cause == "input-bound"), None)
    if limit and limit.speedup.estimate > worst.speedup.estimate:
        return (
            f"{worst.cause} slows this training{means}: {how} {gain}. Even then its "
            "input holds it up: without any it would run "
            f"{times_as_fast(limit.speedup)}."
        )
    return (
        f"{worst.cause} slows this training most{means}: {how} {gain}"
        f"{_as_bad(worst, others)}."
    )


def _as_bad(worst: Cause, others: Sequence[Cause]) -> str:
    alike = [one for one in others if one.speedup.high >= worst.speedup.low]
    if not alike:
        return ""
    names = [
        f"{one.cause} ({units.ratio(one.speedup.estimate)})"
        if is_known(one.speedup.low, one.speedup.high)
        else one.cause
        for one in alike
    ]
    return f"; {' and '.join(names)} may bring as much"


def _healthy(found: Diagnosis) -> str:
    said = "Nothing wrong is shown in this training: no swap shows a defect"
    chances = opportunities(found)
    if not chances:
        said += f", and none brings {units.percent(CLAIMED - 1)} or more"
    elif chances[0].cause == "input-bound":
        said += f"; without any input it would run {times_as_fast(chances[0].speedup)}"
    reached = split.known(found.facts)
    if _is_compute_bound(found):
        said += ". It is compute-bound: most of its time is the work of its steps"
    said += f". {split.in_words(reached)}" if reached is not None else "."
    best = next((c for c in chances if c.cause != "input-bound"), None)
    if best is None:
        return said
    return (
        f"{said} The machine could do more: with {best.cause} it runs "
        f"{times_as_fast(best.speedup)}."
    )


def _is_compute_bound(found: Diagnosis) -> bool:
    """Whether what no change takes away is shown to be most of a step."""
    work = found.split.get("compute")
    return bool(found.step and work and (work.low or 0.0) > found.step.median_s / 2)


def _next(found: Diagnosis) -> Iterator[str]:
    healthy = bool(found.causes) and not defects(found)
    first = "Nothing has to be mended. For more speed, {}: " if healthy else ""
    for number, cause in enumerate(found.causes[:_MOST_FIXES]):
        before = "Then, for {}: " if number else first
        yield before.format(cause.cause) + cause.to_type
    if not found.causes and left_open(found):
        yield f"Diagnose again with a budget of {units.seconds(2 * found.budget_s)}."


def _unmeasured(found: Diagnosis) -> str:
    """What is known where nothing was swapped: how long a step took at first sight."""
    ended = found.outcome not in ("completed", "stopped")
    step_s = 0.0 if ended else float(found.facts.get("step_s") or 0)
    if not step_s:
        return f"Nothing could be measured: {_why_not(found)}."
    step = units.seconds(step_s)
    return f"A step takes about {step}; more could not be measured: {_why_not(found)}."


def _why_not(found: Diagnosis) -> str:
    ended = [
        trial.message
        for trial in found.trials
        if trial.variant == AS_GIVEN and trial.outcome not in ("completed", "stopped")
    ]
    if ended:
        return f"the training {ended[-1].rstrip('.') or found.outcome}"
    if found.stopped:
        return "the run was stopped before the training had made enough steps"
    return "the training made too few steps within the budget"
