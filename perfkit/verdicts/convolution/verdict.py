"""What a run of convolutions means, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.findings.record import Verdict
from perfkit.verdicts.convolution import facts, numbers
from perfkit.verdicts.words import interval, quoted
from perfkit.workloads.convolutions.ways import BASELINE, OWN, WAYS

if TYPE_CHECKING:
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison, Timing
    from perfkit.verdicts.convolution.numbers import Bound, Speed
    from perfkit.workloads.convolutions.problem import Problem

_NEXT: dict[Bound, str] = {
    "compute": "Only less arithmetic or shorter numbers make this faster: fewer "
    "channels, a larger stride, bfloat16 where this machine has units for it.",
    "memory": "Move fewer numbers: compute several layers in one compiled function, or "
    "use shorter numbers.",
    "overhead": "Give each call more work: a larger batch, or the whole model in one "
    "`tf.function`. No faster convolution helps here.",
    "none": "",
}


def judge(measured: Measurement, problem: Problem) -> Verdict:
    """Say which way is fastest, how near to the limits, and what holds it up."""
    contenders = numbers.contenders(measured)
    if not contenders:
        return Verdict(
            headline="No way of computing this convolution could be timed.",
            because=tuple(facts.untimed(measured)),
            next="Look at how the trials ended, or give the run more seconds.",
        )
    best, *ties = measured.fastest(contenders)
    compared = measured.compare(best.variant, BASELINE)
    won = compared is not None and compared.verdict == "faster"
    found = numbers.speeds(measured, problem)
    speed = next(s for s in found if s.variant == best.variant)
    return Verdict(
        headline=(
            _won(speed, best, ties, compared)
            if won and compared
            else _not_won(speed, best, ties, compared)
        ),
        because=facts.because(measured, problem, found),
        next=_next(speed if won else _of(BASELINE, found) or speed, best, compared),
        winner=best.variant if won else "",
    )


def _won(speed: Speed, best: Timing, ties: list[Timing], compared: Comparison) -> str:
    shared = ""
    if ties:
        names = facts.listed(tie.variant for tie in ties)
        shared = f", and no difference to {names} is shown"
    return (
        f"{quoted(best.variant)} computes this convolution fastest here{shared}: "
        f"{_reached(best, speed)}, {_gain(compared)}."
    )


def _not_won(
    speed: Speed, best: Timing, ties: list[Timing], compared: Comparison | None
) -> str:
    name, base = quoted(best.variant), quoted(BASELINE)
    reached = _reached(best, speed)
    if best.variant == BASELINE:
        if ties:
            return f"No way is shown to be faster than {base}, which reaches {reached}."
        return f"{base} is the fastest way here: {reached}."
    if compared is None:
        return f"{name} reaches {reached}; no round compares it with {base}."
    start = "No way is shown to be faster than"
    if compared.verdict == "too noisy to say":
        start = "Too noisy to say whether any way is faster than"
    return f"{start} {base}: the best, {name}, reaches {_gain(compared)}."


def _gain(compared: Comparison) -> str:
    times = f"{units.ratio(compared.ratio)} {quoted(compared.baseline)}"
    return f"{times} ({interval(compared)})"


def _next(speed: Speed, best: Timing, compared: Comparison | None) -> str:
    if compared is not None and compared.verdict == "too noisy to say":
        return "End what else runs on this machine, or give the run more seconds."
    if compared is None or compared.verdict != "faster":
        keep = f"Keep {quoted(BASELINE)}."
        return f"{keep} {_NEXT[speed.bound]}".strip()
    if best.variant == OWN:
        return "Use your own function, and measure it inside your model."
    change = WAYS[best.variant].changes.rstrip(".")
    return f"Use {quoted(best.variant)}: {change}. {_NEXT[speed.bound]}".strip()


def _of(name: str, found: list[Speed]) -> Speed | None:
    return next((speed for speed in found if speed.variant == name), None)


def _reached(timing: Timing, speed: Speed) -> str:
    return f"{units.rate(timing.rate, 'images')}, {facts.gflops(speed.gflops)}"
