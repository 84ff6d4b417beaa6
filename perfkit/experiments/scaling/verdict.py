"""What a run on several devices means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.scaling import numbers
from perfkit.experiments.scaling.agreement import LEARNS_OTHERWISE
from perfkit.experiments.scaling.numbers import SHARED, limits
from perfkit.experiments.scaling.work import GPU
from perfkit.experiments.shared.words import (
    brief,
    failures,
    interval,
    noise,
    quoted,
    ratio,
)
from perfkit.findings.record import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.experiments.scaling.numbers import Fed, Limit, Point, Sum
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison, Estimate


def grounds(measured: Measurement) -> Iterator[str]:
    """The facts that a verdict rests on."""
    yield from noise(measured)
    yield from _efficiency(measured)
    yield from _strategy(measured)
    yield from _link(measured)
    yield from (_summed(one, measured) for one in numbers.sums(measured))
    yield from map(_fed, numbers.fed(measured))
    yield from _limits(measured)
    yield from failures(measured)


def between(found: Estimate, write: Callable[[float], str]) -> str:
    """A number with the ends of its interval."""
    return units.between(found.value, found.low, found.high, write)


def _efficiency(measured: Measurement) -> Iterator[str]:
    of = numbers.kind(measured)
    more = [point for point in numbers.points(measured) if point.speed_up]
    if not more:
        return
    said = "; ".join(
        f"{numbers.of(of, p.count)} {between(p.efficiency, units.percent)}"
        for p in more
    )
    yield f"Efficiency, the share of so many times one device's rate: {said}."
    if of != GPU:
        most = more[-1].count
        yield (
            f"They compute on the same cores, so 1/{most}, which is "
            f"{units.percent(1 / most)}, is what {numbers.of(of, most)} reach where "
            "sharing costs nothing and one of them keeps all cores busy."
        )


def _strategy(measured: Measurement) -> Iterator[str]:
    cost = numbers.strategy_cost(measured)
    if cost is not None:
        yield (
            f"The strategy itself: {quoted(cost.variant)} reaches {brief(cost)} of "
            f"the rate of {quoted(cost.baseline)}."
        )


def _link(measured: Measurement) -> Iterator[str]:
    rate, is_gpu = numbers.link(measured), numbers.kind(measured) == GPU
    if rate is not None:
        how = (
            "from the first GPU to the second, one way at a time"
            if is_gpu
            else "within memory, bytes read and written counted"
        )
        yield f"Measured, copying {how}: {between(rate, _bytes_per_second)}."
    yield from numbers.joined(measured)


def _summed(one: Sum, measured: Measurement) -> str:
    who = numbers.of(numbers.kind(measured), one.count)
    shown = (
        f"seen: {between(one.seen, units.seconds)} of a step, "
        f"{between(one.share, units.percent)} of it"
    )
    if one.seen.low <= 0:
        shown += ", so that none is shown for sure"
    if one.predicted is None or one.remainder is None:
        return f"Summing the gradients of {who}, {shown}. Nothing was predicted."
    expected = between(one.predicted, units.seconds)
    rest = between(one.remainder, units.seconds)
    return (
        f"Summing the gradients of {who}, computed from {units.size(one.moved)} over "
        f"that link: {expected}; {shown}; not explained by the link: {rest}."
    )


def _fed(one: Fed) -> str:
    return (
        f"{quoted(one.got.variant)} reaches {brief(one.against)} of the rate of "
        f"{quoted(one.wanted.variant)}: {units.rate(one.got.rate)} where "
        f"{units.rate(one.wanted.rate)} are wanted."
    )


def _limits(measured: Measurement) -> Iterator[str]:
    found = limits(measured)
    if found:
        of = numbers.kind(measured)
        said = "; ".join(f"{numbers.of(of, one.count)}: {_what(one)}" for one in found)
        yield f"What holds them up when they are fed: {said}."


def _what(limit: Limit) -> str:
    if limit.what == "neither":
        return "neither input nor sum is shown to take a tenth of a step"
    what = "their input" if limit.what == "input" else "the sum of gradients"
    return f"{what}, {units.percent(limit.share)} of a step"


def _bytes_per_second(rate: float) -> str:
    return units.rate(rate, "B")


_BATCHES = {"weak": "each with a batch of its own", "strong": "sharing one batch"}
_GOOD = 0.9
_ONE_GPU = "one GPU is all there is"


def judge(measured: Measurement, scaling: str) -> Verdict:
    """Say what several devices bring, and what to change.

    Args:
        measured: The run.
        scaling: ``"weak"`` or ``"strong"``.
    """
    because = tuple(grounds(measured))
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
    who = numbers.of(numbers.kind(measured), point.count)
    reached = between(point.efficiency, units.percent)
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
