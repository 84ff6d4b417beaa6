"""What a run on several devices shows besides its headline, a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.scaling import names, numbers
from perfkit.experiments.scaling.devices import GPU
from perfkit.experiments.scaling.limits import limits
from perfkit.experiments.shared.words import brief, failures, noise, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.experiments.scaling.limits import Limit
    from perfkit.experiments.scaling.numbers import Fed, Sum
    from perfkit.measure.estimate import Estimate
    from perfkit.measure.measurement import Measurement


def because(measured: Measurement) -> Iterator[str]:
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
        f"{names.of(of, p.count)} {between(p.efficiency, units.percent)}" for p in more
    )
    yield f"Efficiency, the share of so many times one device's rate: {said}."
    if of != GPU:
        most = more[-1].count
        yield (
            f"They compute on the same cores, so 1/{most}, which is "
            f"{units.percent(1 / most)}, is what {names.of(of, most)} reach where "
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
    who = names.of(numbers.kind(measured), one.count)
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
        said = "; ".join(f"{names.of(of, one.count)}: {_what(one)}" for one in found)
        yield f"What holds them up when they are fed: {said}."


def _what(limit: Limit) -> str:
    if limit.what == "neither":
        return "neither input nor sum is shown to take a tenth of a step"
    what = "their input" if limit.what == "input" else "the sum of gradients"
    return f"{what}, {units.percent(limit.share)} of a step"


def _bytes_per_second(rate: float) -> str:
    return units.rate(rate, "B")
