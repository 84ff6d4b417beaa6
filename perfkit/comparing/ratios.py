"""B's speed over A's, judged as perfkit judges every ratio.

Both were measured apart, so the doubts of both add up, and so do their noise floors. A
difference needs an interval that leaves out 1 and a ratio beyond those floors. Where
several jobs are looked at, the intervals are widened so that all of them hold at once:
among enough of them one would seem to differ by chance.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

from perfkit.comparing.differing import Ratio, RungRatio
from perfkit.findings.text import plain
from perfkit.measure.statistics import WORTH_KNOWING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from perfkit.comparing.works import Held
    from perfkit.measure.statistics import Comparing
    from perfkit.passports.record import RungRate

Interval = tuple[float | None, float | None, float | None]
# Standard errors that the half of a 95 % interval holds.
HALF = 1.96
_LEVEL = 0.05
# Nothing is done less often or more often in a second; a file may say anything.
_LEAST, _MOST = 1e-9, 1e21


def between(
    a: Interval,
    b: Interval,
    floors: tuple[float | None, float | None],
    looks: int = 1,
    shared: float = 0.0,
) -> Ratio | None:
    """Compare two rates, each low, middle and high.

    Args:
        a: Of A.
        b: Of B.
        floors: The noise floors of both; None where one is not known.
        looks: How many such ratios the same statement looks at.
        shared: What the intervals of all of them have in common, see ``Ratio``.

    Returns:
        None where one was not measured, or without an interval.
    """
    one, other = logarithm(a), logarithm(b)
    if one is None or other is None:
        return None
    middle = other[0] - one[0]
    half = math.hypot(one[1], other[1]) * _widened(looks)
    return Ratio(
        ratio=math.exp(middle),
        low=math.exp(middle - half),
        high=math.exp(middle + half),
        verdict=_judged(middle, half, floors),
        shared=shared,
    )


def on_the_whole(found: Iterable[Ratio]) -> Ratio | None:
    """One ratio over several jobs, those that are known best counting most.

    Only that no difference shows on the whole is ever read from it: what disturbed one
    machine disturbed all of its jobs, so that nothing is claimed by adding them up, and
    what they share is no better known of all than of one.
    """
    ratios = list(found)
    logs = [(math.log(one.ratio), math.log(one.high / one.low) / 2) for one in ratios]
    if not logs or min(half for _, half in logs) <= 0:
        return None
    # Each was widened for the number of them; the mean of all is one look.
    widened, shared = _widened(len(logs)), max(one.shared for one in ratios)
    own = [_without(half / widened, shared) for _, half in logs]
    weights = [1 / half**2 for half in own]
    told = zip(weights, logs, strict=True)
    middle = math.fsum(weight * log for weight, (log, _) in told) / math.fsum(weights)
    half = math.hypot(1 / math.sqrt(math.fsum(weights)), shared)
    alike = abs(middle) + half <= math.log(WORTH_KNOWING)
    return Ratio(
        ratio=math.exp(middle),
        low=math.exp(middle - half),
        high=math.exp(middle + half),
        verdict="no difference shown" if alike else "too noisy to say",
        shared=shared,
    )


def _without(half: float, shared: float) -> float:
    """Half of an interval without what it shares; some of it is always its own."""
    return math.sqrt(max(half**2 - shared**2, (half / 2) ** 2))


def rungs(a: Held, b: Held) -> tuple[RungRatio, ...]:
    """Each rung that one of the two has, in the ladder's order."""
    floors = a.rungs_floor, b.rungs_floor
    both = dict.fromkeys((*a.rungs, *b.rungs))
    pairs = {name: (a.rungs.get(name), b.rungs.get(name)) for name in both}
    looks = sum(not _apart(*pair) for pair in pairs.values())
    return tuple(_rung(name, *pair, floors, looks) for name, pair in pairs.items())


def by_name(found: tuple[RungRatio, ...]) -> Mapping[str, RungRatio]:
    """The rungs by their names."""
    return {rung.name: rung for rung in found}


def _rung(
    name: str,
    a: RungRate | None,
    b: RungRate | None,
    floors: tuple[float | None, float | None],
    looks: int,
) -> RungRatio:
    known = a or b
    made = RungRatio(
        name=name,
        group=plain(known.group if known else "", 30),
        unit=plain(known.unit if known else "units", 20),
        a=a.rate if a else None,
        b=b.rate if b else None,
    )
    why = _apart(a, b)
    if a is None or b is None or why:
        return replace(made, missing=why)
    speed = between((a.low, a.rate, a.high), (b.low, b.rate, b.high), floors, looks)
    if speed and min(a.trials, b.trials) < 2:
        # One trial shows nothing of how trials differ: nothing is claimed.
        speed = replace(speed, verdict="too noisy to say")
    return replace(made, speed=speed, missing="" if speed else "It has no interval.")


def _apart(a: RungRate | None, b: RungRate | None) -> str:
    """Why two rungs of a name are not held against each other."""
    for side, rung in (("A", a), ("B", b)):
        if rung is None or rung.rate is None:
            told = f": {plain(rung.missing, 120)}" if rung and rung.missing else "."
            return f"Not measured on {side}{told}"
    if a is None or b is None:
        return ""
    if a.unit != b.unit:
        return "The two count different things."
    if a.group == "disk" and a.what != b.what:
        return "One read from the disk, the other maybe from memory."
    return ""


def logarithm(interval: Interval) -> tuple[float, float] | None:
    """Middle and half width of the logarithms; None where they say nothing."""
    low, value, high = interval
    if not value or not low or not high:
        return None
    if not all(_LEAST <= number <= _MOST for number in (low, value, high)):
        return None
    return math.log(value), math.log(high / low) / 2


def _widened(looks: int) -> float:
    """How much wider each of so many intervals is, for all to hold at once."""
    level = 1 - _LEVEL / (2 * max(1, looks))
    return statistics.NormalDist().inv_cdf(level) / HALF


def _judged(
    middle: float, half: float, floors: tuple[float | None, float | None]
) -> Comparing:
    floor = math.hypot(*(math.log(floor) if floor else 0.0 for floor in floors))
    if abs(middle) > max(half, floor):
        return "faster" if middle > 0 else "slower"
    left_open = abs(middle) + half
    worth = math.log(WORTH_KNOWING)
    return "no difference shown" if left_open <= worth else "too noisy to say"
