"""What a run of convolutions means, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.convolution import facts, numbers
from perfkit.experiments.convolution.ways import BASELINE, OWN, WAYS
from perfkit.experiments.shared.words import interval, quoted, ratio
from perfkit.findings.record import Verdict
from perfkit.measure.statistics import WORTH_KNOWING

if TYPE_CHECKING:
    from perfkit.experiments.convolution.numbers import Bound, Speed
    from perfkit.experiments.convolution.problem import Problem
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison, Timing

_NEXT: dict[Bound, str] = {
    "compute": "Less arithmetic or shorter numbers make this faster: fewer "
    "channels, a larger stride, bfloat16 where this machine has units for it.",
    "memory": "Move fewer numbers: compute several layers in one compiled function, or "
    "use shorter numbers.",
    "overhead": "Give each call more work: a larger batch, or the whole model in one "
    "`tf.function`. A faster convolution saves less than half of a call here.",
    "none": "",
}
_QUIETER = "End what else runs on this machine, or give the run more seconds."


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
    because = facts.because(measured, problem, found)
    if won and compared:
        return Verdict(
            headline=_won(speed, best, ties, compared),
            because=because,
            next=_change(speed, best),
            winner=best.variant,
        )
    noisy = _noisy(measured, [best, *ties])
    none = "Too noisy to say whether any way is" if noisy else _none(measured)
    return Verdict(
        headline=_not_won(none, speed, best, ties, compared),
        because=because,
        next=_QUIETER if noisy else _keep(_of(BASELINE, found) or speed),
    )


def _won(speed: Speed, best: Timing, ties: list[Timing], compared: Comparison) -> str:
    shared = ""
    if ties:
        names = facts.listed(tie.variant for tie in ties)
        shared = f", and is not shown to differ from {names}"
    return (
        f"{quoted(best.variant)} computes this convolution fastest here{shared}: "
        f"{_reached(best, speed)}, {_gain(compared)}."
    )


def _noisy(measured: Measurement, ranked: list[Timing]) -> bool:
    """Whether a way may be faster than the baseline by more than is worth knowing."""
    others = (t.variant for t in ranked if t.variant != BASELINE)
    found = (measured.compare(name, BASELINE) for name in others)
    return any(c is None or c.high > WORTH_KNOWING for c in found)


def _none(measured: Measurement) -> str:
    """That no way is faster, where shorter numbers are: of which ways that is said."""
    short = (name for name, way in WAYS.items() if way.precision != "float32")
    found = [measured.compare(name, BASELINE) for name in short]
    faster = any(c is not None and c.verdict == "faster" for c in found)
    return f"No way{' with all digits of float32' * faster} is shown to be"


def _not_won(
    none: str,
    speed: Speed,
    best: Timing,
    ties: list[Timing],
    compared: Comparison | None,
) -> str:
    name, base = quoted(best.variant), quoted(BASELINE)
    reached = _reached(best, speed)
    if best.variant == BASELINE:
        if ties:
            return f"{none} faster than {base}, which reaches {reached}."
        return f"{base} is the fastest way here: {reached}."
    if compared is None:
        return f"{name} reaches {reached}; no round compares it with {base}."
    return f"{none} faster than {base}: the best, {name}, reaches {_gain(compared)}."


def _gain(compared: Comparison) -> str:
    times = f"{ratio(compared)} {quoted(compared.baseline)}"
    return f"{times} ({interval(compared)})"


def _keep(speed: Speed) -> str:
    return f"Keep {quoted(BASELINE)}. {_NEXT[speed.bound]}".strip()


def _change(speed: Speed, best: Timing) -> str:
    if best.variant == OWN:
        return "Use your own function, and measure it inside your model."
    change = WAYS[best.variant].changes.rstrip(".")
    return f"Use {quoted(best.variant)}: {change}. {_NEXT[speed.bound]}".strip()


def _of(name: str, found: list[Speed]) -> Speed | None:
    return next((speed for speed in found if speed.variant == name), None)


def _reached(timing: Timing, speed: Speed) -> str:
    rate = units.rate_between(timing.rate, timing.low, timing.high, "images")
    return f"{rate}, {facts.gflops(speed.gflops)}"
