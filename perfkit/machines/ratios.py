"""How many times as fast a part of one machine is as that of another."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from perfkit.findings.text import plain
from perfkit.measure.statistics import WORTH_KNOWING, Comparing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from perfkit.machines.comparison import Held
    from perfkit.passports.passport import BenchmarkRate


Side = Literal["", "A", "B"]


@dataclass(frozen=True, kw_only=True)
class Differs:
    """One thing in which two jobs differ, in words."""

    what: str
    a: str
    b: str


@dataclass(frozen=True, kw_only=True)
class MachineDiffers:
    """One thing in which two machines differ.

    Attributes:
        what: Such as ``"cores granted"``.
        a: Of A, with its unit; ``b`` of B.
        topic: Differences of one topic are one cause, such as ``"core speed"``.
        parts: What of a training's step it can slow.
        slower: The machine that it slows; "" where the records alone do not say.
        sign: Which microbenchmarks would show it, by ``compare``; "" where none does.
    """

    what: str
    a: str
    b: str
    topic: str
    parts: tuple[str, ...] = ()
    slower: Side = ""
    sign: str = ""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """B's speed over A's, with its 95 % interval and what that shows.

    Attributes:
        shared: How much of the interval all ratios of the two machines have in common,
            because a machine rises and falls as a whole: half of it, of the logarithm.
    """

    ratio: float
    low: float
    high: float
    verdict: Comparing
    shared: float = 0.0


@dataclass(frozen=True, kw_only=True)
class BenchmarkRatio:
    """One microbenchmark on both machines.

    Attributes:
        a: Units per second on A, ``b`` on B; None where it was not measured.
        speed: None where the two cannot be held against each other.
        missing: Why not, in a sentence; "" where they can.
    """

    name: str
    group: str
    unit: str
    a: float | None = None
    b: float | None = None
    speed: Ratio | None = None
    missing: str = ""


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
    trials: int = 2,
) -> Ratio | None:
    """Compare two rates, each low, middle and high.

    So many ``looks``, ratios that one statement looks at, widen every interval. Where a
    rate rests on one trial, that shows nothing of how trials differ, so that nothing is
    claimed.

    Returns:
        None where one was not measured, or without an interval.
    """
    one, other = logarithm(a), logarithm(b)
    if one is None or other is None:
        return None
    middle = other[0] - one[0]
    half = math.hypot(one[1], other[1]) * _widened(looks)
    floor = math.hypot(*(math.log(floor) if floor else 0.0 for floor in floors))
    verdict = _without_claim(middle, half)
    if trials < 2:
        verdict = "too noisy to say"
    elif abs(middle) > max(half, floor):
        verdict = "faster" if middle > 0 else "slower"
    return _ratio(middle, half, verdict, shared)


def _without_claim(middle: float, half: float) -> Comparing:
    """Whether a difference that is worth knowing can be left out."""
    alike = abs(middle) + half <= math.log(WORTH_KNOWING)
    return "no difference shown" if alike else "too noisy to say"


def _ratio(middle: float, half: float, verdict: Comparing, shared: float) -> Ratio:
    low, ratio, high = map(math.exp, (middle - half, middle, middle + half))
    return Ratio(ratio=ratio, low=low, high=high, verdict=verdict, shared=shared)


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
    # Without what they share; some of an interval is always its own.
    own = [max((h / widened) ** 2 - shared**2, (h / widened / 2) ** 2) for _, h in logs]
    weights = [1 / square for square in own]
    told = zip(weights, logs, strict=True)
    middle = math.fsum(weight * log for weight, (log, _) in told) / math.fsum(weights)
    half = math.hypot(1 / math.sqrt(math.fsum(weights)), shared)
    return _ratio(middle, half, _without_claim(middle, half), shared)


def microbenchmarks(a: Held, b: Held) -> tuple[BenchmarkRatio, ...]:
    """Each microbenchmark that one of the two has, in its usual order."""
    floors = a.rates_floor, b.rates_floor
    both = dict.fromkeys((*a.rates, *b.rates))
    pairs = {name: (a.rates.get(name), b.rates.get(name)) for name in both}
    looks = sum(not _apart(*pair) for pair in pairs.values())
    return tuple(_benchmark(name, *pair, floors, looks) for name, pair in pairs.items())


def _benchmark(
    name: str,
    a: BenchmarkRate | None,
    b: BenchmarkRate | None,
    floors: tuple[float | None, float | None],
    looks: int,
) -> BenchmarkRatio:
    known = a or b
    made = BenchmarkRatio(
        name=name,
        group=plain(known.group if known else "", 30),
        unit=plain(known.unit if known else "units", 20),
        a=a.rate if a else None,
        b=b.rate if b else None,
    )
    why = _apart(a, b)
    if a is None or b is None or why:
        return replace(made, missing=why)
    trials = min(a.trials, b.trials)
    both = (a.low, a.rate, a.high), (b.low, b.rate, b.high)
    speed = between(*both, floors, looks, trials=trials)
    return replace(made, speed=speed, missing="" if speed else "It has no interval.")


def _apart(a: BenchmarkRate | None, b: BenchmarkRate | None) -> str:
    """Why two microbenchmarks of a name are not held against each other."""
    for side, one in (("A", a), ("B", b)):
        if one is None or one.rate is None:
            told = f": {plain(one.missing, 120)}" if one and one.missing else "."
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


CORES, SPEED, KERNELS, PYTHON = "cores", "core speed", "kernels", "interpreter"
MEMORY, DISK, GPU, LINK = "memory", "disk", "GPU", "link"
THREADS = "threads"

_NONE = "not said"
# Libraries that do the work: that they differ is said with the verdict.
_WORKERS = {"tensorflow": "TensorFlow", "keras": "Keras"}


def same_job(a: Held, b: Held) -> tuple[Differs, ...]:
    """In what two documents differ as a whole; () where they ask for the same."""
    return _unlike(a.asked, b.asked)


def same_work(a: Held, b: Held, name: str) -> tuple[Differs, ...]:
    """In what one job differs, which both have; () where it is the same."""
    one, other = a.works[name].job, b.works[name].job
    known = {"weights"} - (one.keys() & other.keys())
    return _unlike(_without(one, known), _without(other, known))


def other_software(a: Held, b: Held) -> str:
    """That other libraries did the job, in a sentence; "" where they are the same."""
    told = [
        f"{title} {_version(a, name)} on A, {_version(b, name)} on B"
        for name, title in _WORKERS.items()
        if _version(a, name) != _version(b, name)
    ]
    if not told:
        return ""
    return (
        f"The job is the same, what did it is not: {'; '.join(told)}. Libraries count "
        "as part of the machine."
    )


def _version(held: Held, name: str) -> str:
    return plain(held.machine.versions.get(name, "not installed"), 40)


def _without(job: Mapping[str, str], names: set[str]) -> dict[str, str]:
    return {name: value for name, value in job.items() if name not in names}


def _unlike(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[Differs, ...]:
    return tuple(
        Differs(what=name, a=a.get(name, _NONE), b=b.get(name, _NONE))
        for name in dict.fromkeys((*a, *b))
        if a.get(name) != b.get(name)
    )
