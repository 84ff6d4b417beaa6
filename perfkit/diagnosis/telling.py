"""A diagnosis in words: what slows the training, on what that rests, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.diagnosis import peak, statements
from perfkit.diagnosis.choosing import AS_GIVEN, CLAIMED, TOGETHER
from perfkit.diagnosis.statements import (
    MEANINGS,
    defects,
    opportunities,
    times_as_fast,
)
from perfkit.findings.record import Verdict
from perfkit.units import is_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.findings.diagnosis import Cause, Diagnosis
    from perfkit.measure.measurement import Measurement

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
            because=tuple(statements.late(found)),
            next=_REMEDIES.get(found.outcome, _REMEDIES["completed"]),
        )
    return Verdict(
        headline=_applied(found) or _headline(found),
        because=tuple(statements.because(found)),
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
        what = f"{statements.listed(found.together.swaps)}, applied together"
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
    still_open, ruled_out = statements.left_open(found), statements.ruled_out(found)
    if still_open:
        known = f": {' and '.join(ruled_out)}" if ruled_out else ""
        return (
            f"No defect is shown in this training so far{known}. Not known yet: "
            f"{statements.listed(still_open)}; the run was too short or too noisy."
        )
    if not statements.rounds(found):
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
    reached = peak.known(found.facts)
    if _is_compute_bound(found):
        said += ". It is compute-bound: most of its time is the work of its steps"
    said += f". {peak.in_words(reached)}" if reached is not None else "."
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
    if not found.causes and statements.left_open(found):
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
