"""What the timings of several ways to feed images mean, in words.

Everything is read from a ``Measurement`` and nothing else, so that a verdict can be
worked out again from what was saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.findings.record import Verdict
from perfkit.verdicts.feeding import facts, numbers
from perfkit.verdicts.words import failures, listed, quoted
from perfkit.workloads.ways import BASELINE, WAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison, Timing

# A step that waits less than this share of its time has no trouble with its data.
_WAIT_MATTERS = 0.05


def judge(measured: Measurement, *, alone: bool) -> Verdict:
    """Say which way is fastest, by how much, how sure that is, and what to change.

    Args:
        measured: The run.
        alone: Whether none of its arms trained on the batches.
    """
    contenders = numbers.contenders(measured)
    if not contenders:
        return Verdict(
            headline="No way of feeding images could be timed.",
            because=failures(measured),
            next="Look at how the trials ended, or give the run more seconds.",
        )
    best, *ties = measured.fastest(contenders)
    compared = measured.compare(best.variant, BASELINE)
    won = compared is not None and compared.verdict == "faster"
    headline = (
        _won(best, ties, compared, alone)
        if won and compared
        else _not_won(best, ties, compared)
    )
    return Verdict(
        headline=headline,
        because=facts.because(measured, best.variant),
        next=_next(measured, best.variant, compared),
        winner=best.variant if won else "",
    )


def _won(
    best: Timing, ties: Sequence[Timing], compared: Comparison, alone: bool
) -> str:
    doing = "delivers images fastest" if alone else "feeds this training fastest"
    gain = (
        f"{units.ratio(compared.ratio)} {quoted(BASELINE)} "
        f"({_interval(compared)}, {_rounds(compared)})"
    )
    if not ties:
        return f"{quoted(best.variant)} {doing} here: {_rate(best)}, {gain}."
    others = listed([tie.variant for tie in ties])
    return (
        f"{quoted(best.variant)} {doing} here, and no difference to {others} "
        f"is shown: {_rate(best)}, {gain}."
    )


def _not_won(best: Timing, ties: Sequence[Timing], compared: Comparison | None) -> str:
    if best.variant == BASELINE:
        name, rate = quoted(BASELINE), _rate(best)
        if ties:
            return f"No way is shown to be faster than {name}, which reaches {rate}."
        return f"{name} is the fastest way here: {rate}."
    if compared is None:
        return (
            f"{quoted(best.variant)} reaches {_rate(best)}; no round compares "
            f"it with {quoted(BASELINE)}."
        )
    reached = (
        f"the best, {quoted(best.variant)}, reaches "
        f"{units.ratio(compared.ratio)} ({_interval(compared)}, {_rounds(compared)})"
    )
    if compared.verdict == "too noisy to say":
        return (
            "Too noisy to say whether any way is faster than "
            f"{quoted(BASELINE)}: {reached}."
        )
    return f"No way is shown to be faster than {quoted(BASELINE)}: {reached}."


def _next(measured: Measurement, best: str, compared: Comparison | None) -> str:
    won = compared is not None and compared.verdict == "faster"
    # What the reader has is the baseline, unless there is something to change to.
    waits = numbers.waiting(measured, best if won else BASELINE)
    fed = waits is not None and waits < _WAIT_MATTERS
    if won:
        change = f"Change this line: `{WAYS[best].advice}`."
        rest = " After that, what takes the time is the step itself, not its data."
        return change + rest if fed else change
    if fed:
        return (
            "Leave the pipeline as it is: this training does not wait for its data. "
            "Look at the step itself: its precision, its batch size, its compiler."
        )
    if compared is not None and compared.verdict == "too noisy to say":
        return "End what else runs on this machine, or give the run more seconds."
    return f"Keep the simplest way, `{WAYS[BASELINE].advice}`."


def _rate(timing: Timing) -> str:
    return units.rate(timing.rate, "images")


def _interval(compared: Comparison) -> str:
    return f"95 % interval {compared.low:.2f} to {compared.high:.2f}"


def _rounds(compared: Comparison) -> str:
    return f"{compared.rounds} round{'s' if compared.rounds != 1 else ''}"
