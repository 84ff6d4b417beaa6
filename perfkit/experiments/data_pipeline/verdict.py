"""What the timings of several ways to feed images mean, in words.

Everything is read from a ``Measurement`` and nothing else, so that a verdict can be
worked out again from what was saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.data_pipeline import facts, numbers
from perfkit.experiments.data_pipeline.ways import BASELINE, WAYS
from perfkit.experiments.shared.words import failures, interval, listed, quoted, ratio
from perfkit.findings.record import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison, Timing


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
            because=(*failures(measured), *facts.images_fed(measured)),
            next="Look at how the trials ended, or give the run more seconds.",
        )
    known = measured.comparisons
    if known and not any(compared.is_judged for compared in known):
        return Verdict(
            headline="One round: shown, and not judged.",
            because=(*failures(measured), *facts.images_fed(measured)),
            next="Give the run more seconds: one round left everything open.",
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
    gain = f"{ratio(compared)} {quoted(BASELINE)} ({interval(compared)})"
    if not ties:
        return f"{quoted(best.variant)} {doing} here: {_rate(best)}, {gain}."
    others = listed([tie.variant for tie in ties])
    return (
        f"{quoted(best.variant)} {doing} here, and is not shown to differ from "
        f"{others}: {_rate(best)}, {gain}."
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
        f"the best, {quoted(best.variant)}, reaches {ratio(compared)} "
        f"({interval(compared)})"
    )
    if compared.verdict == "too noisy to say":
        return (
            "Too noisy to say whether any way is faster than "
            f"{quoted(BASELINE)}: {reached}."
        )
    return f"No way is shown to be faster than {quoted(BASELINE)}: {reached}."


def _next(measured: Measurement, best: str, compared: Comparison | None) -> str:
    won = compared is not None and compared.verdict == "faster"
    if won:
        change = f"Change this line: `{WAYS[best].advice}`."
        return f"{change} {_left_in_input(measured, best)}".strip()
    bare = numbers.without_input(measured, BASELINE)
    if bare is not None and bare.verdict == "no difference shown":
        return (
            "Leave the pipeline as it is: without any input this training gains less "
            "than 10 %, if anything. Look at the step itself: its precision, its batch "
            "size, its compiler."
        )
    if compared is not None and compared.verdict == "too noisy to say":
        return "End what else runs on this machine, or give the run more seconds."
    return f"Keep the simplest way, `{WAYS[BASELINE].advice}`."


def _left_in_input(measured: Measurement, best: str) -> str:
    """What the input still costs once the line is changed; "" where it is unknown."""
    bare = numbers.without_input(measured, best)
    if bare is not None and bare.verdict == "no difference shown":
        return (
            "After that the input costs less than 10 %, if anything: what takes the "
            "time is the step itself."
        )
    if bare is not None and bare.verdict == "slower":
        return (
            f"After that the input still costs {units.percent(1 - bare.ratio)} of the "
            "rate that this training reaches without any."
        )
    return ""


def _rate(timing: Timing) -> str:
    return units.rate(timing.rate, "images")
