"""What a run on several devices means, in one sentence.

Everything is read from a ``Measurement`` and nothing else, so that a verdict can be
worked out again from what was saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.scaling import facts, names, numbers
from perfkit.experiments.scaling.agreement import LEARNS_OTHERWISE
from perfkit.experiments.scaling.devices import GPU
from perfkit.experiments.scaling.limits import limits
from perfkit.experiments.scaling.names import SHARED
from perfkit.experiments.shared.words import brief, interval, ratio
from perfkit.findings.record import Verdict

if TYPE_CHECKING:
    from perfkit.experiments.scaling.numbers import Point
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison

_BATCHES = {"weak": "each with a batch of its own", "strong": "sharing one batch"}
_GOOD = 0.9
_ONE_GPU = "one GPU is all there is"


def judge(measured: Measurement, scaling: str) -> Verdict:
    """Say what several devices bring, and what to change.

    Args:
        measured: The run.
        scaling: ``"weak"`` or ``"strong"``.
    """
    because = tuple(facts.because(measured))
    points = numbers.points(measured)
    more = [point for point in points if point.speed_up]
    if more:
        return Verdict(
            headline=_headline(measured, more[-1], scaling),
            because=because,
            next=_next(measured, more[-1]),
        )
    if any(arm.unavailable == _ONE_GPU for arm in measured.arms):
        return _of_one(measured, because)
    of = numbers.kind(measured)
    return Verdict(
        headline=f"Fewer than two numbers of {of}s were timed, so nothing is said "
        f"about several.{_shared(measured)}",
        because=because,
        next=_to_time_several(measured),
    )


def _to_time_several(measured: Measurement) -> str:
    if any(LEARNS_OTHERWISE in arm.unavailable for arm in measured.arms):
        return (
            "Choose a model of which several devices learn what one learns, such as "
            "`wide-dense`."
        )
    return "Look at how the trials ended, or give the run more seconds."


def _of_one(measured: Measurement, because: tuple[str, ...]) -> Verdict:
    cost = numbers.strategy_cost(measured)
    learnt = (
        f": with it one GPU reaches {brief(cost)} of its rate without it"
        if cost
        else ", though it was not timed"
    )
    return Verdict(
        headline="One GPU is all there is: nothing is said about several. What can be "
        "learnt here is what input takes, and what the strategy itself costs"
        f"{learnt}.",
        because=because,
        next="Run `perfkit run scaling --on logical` to see how several devices work "
        "together, on logical devices of the processor.",
    )


def _headline(measured: Measurement, point: Point, scaling: str) -> str:
    if point.speed_up is None:
        return ""
    who = names.of(numbers.kind(measured), point.count)
    reached = facts.between(point.efficiency, units.percent)
    return (
        f"{who}, {_BATCHES.get(scaling, 'together')}, {_against_one(point.speed_up)}: "
        f"{reached} of {point.count} times one's rate.{_shared(measured)}"
    )


def _against_one(found: Comparison) -> str:
    rate = f"{ratio(found)} the examples per second ({interval(found)})"
    if found.is_noise:
        return f"are not shown to differ from one ({found.judgement}): {rate}"
    return f"train {found.verdict} than one, {rate}"


def _shared(measured: Measurement) -> str:
    return "" if numbers.kind(measured) == GPU else f" {SHARED}"


def _next(measured: Measurement, point: Point) -> str:
    if numbers.kind(measured) != GPU:
        if point.speed_up and point.speed_up.verdict == "faster":
            here = (
                "One device left cores idle: try a larger `--batch` without a strategy"
            )
        else:
            here = "Train without a strategy on this processor"
        return (
            f"{here}; run this again on a machine with several GPUs before you pay for "
            "them."
        )
    found = {one.count: one for one in limits(measured)}.get(point.count)
    if found and found.what == "input":
        return (
            "Make the pipeline deliver more before you add GPUs: `perfkit run "
            "data-pipeline` says how."
        )
    if found and found.what == "sum":
        return (
            "Sum less often for the same examples: a larger batch on each GPU, which "
            "`perfkit run scaling --batch 128` tries."
        )
    if point.efficiency.low >= _GOOD:
        return "Use all of them; they reach nine tenths of the ideal or more."
    return (
        "Give each GPU more work in a step: try a larger `--batch`, and see whether "
        "the efficiency rises."
    )
