"""What a run over batch sizes shows in numbers: the knee, the line, the load."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perfkit.measure.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison, Timing

_NAME = re.compile(r"batch ([\d,]{1,12})")
# Two sizes always lie on a line.
_FEWEST = 3
# No step time is known better than this share of it.
_BEST_KNOWN = 1e-3
_BENDS = 0.10
_LEVEL = 0.975


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """The seconds of one step at a batch size, with their 95 % interval."""

    size: int
    seconds: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Line:
    """A step's seconds as ``overhead + size * cost``.

    Attributes:
        overhead: Seconds of a step before its first example.
        cost: Seconds of each example.
        bends: The sizes whose step is not on the line, with how many times the line's
            seconds it takes.
    """

    overhead: Estimate
    cost: Estimate
    bends: tuple[tuple[int, float], ...]

    def at(self, size: float) -> float:
        """Seconds of a step by the line."""
        return self.overhead.value + size * self.cost.value

    @property
    def shows_overhead(self) -> bool:
        """Whether there is any for sure."""
        return self.overhead.low > 0


@dataclass(frozen=True, kw_only=True)
class Knee:
    """The smallest size that is not shown to be slower than the best.

    Attributes:
        size: That size.
        best: The size with the highest rate.
        against_best: How the best compares with it; None where it is the best.
        alone: Whether the best is shown to beat all others.
        sizes: All that were timed, in order.
    """

    size: int
    best: int
    against_best: Comparison | None
    alone: bool
    sizes: tuple[int, ...]

    @property
    def firm(self) -> bool:
        """Whether it is known well enough: a larger difference is ruled out."""
        compared = self.against_best
        return compared is None or compared.verdict == "no difference shown"


def name_of(size: int) -> str:
    """What the arm of a batch size is called."""
    return f"batch {size:,}"


def size_of(name: str) -> int:
    """The batch size of an arm; 0 where the name is none of theirs."""
    said = _NAME.fullmatch(name)
    return int(said[1].replace(",", "") or 0) if said else 0


def sized(timings: Sequence[Timing]) -> dict[int, Timing]:
    """The timings of batch sizes, by size and in its order."""
    known = {size_of(timing.variant): timing for timing in timings}
    return {size: known[size] for size in sorted(known) if size}


def step_times(timings: Sequence[Timing]) -> tuple[StepTime, ...]:
    """Seconds of a step at each size, in the order of sizes."""
    return tuple(
        StepTime(size=size, seconds=size / t.rate, low=size / t.high, high=size / t.low)
        for size, t in sized(timings).items()
        if min(t.rate, t.low) > 0
    )


def line(steps: Sequence[StepTime], floor: float | None = None) -> Line | None:
    """Fit the line by weighted least squares; None with fewer than three sizes.

    The weights come from each size's own interval. Where the line misses by more than
    those allow, its own intervals get wider by as much.

    Args:
        steps: What is known of each size.
        floor: The noise floor, a ratio; a size that is off the line by less is not
            said to be off it.
    """
    if len(steps) < _FEWEST:
        return None
    sizes = np.array([s.size for s in steps], np.float64)
    seconds = np.array([s.seconds for s in steps])
    half = np.array([(s.high / s.low) ** 0.5 - 1 for s in steps])
    spread = seconds * np.maximum(half / 2, _BEST_KNOWN)
    design = np.stack([np.ones_like(sizes), sizes], axis=1) / spread[:, None]
    found, *_ = np.linalg.lstsq(design, seconds / spread, rcond=None)
    misses = seconds / spread - design @ found
    freedom = len(steps) - 2
    scale = max(1.0, float(misses @ misses) / freedom)
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * scale)
    reach = _student(freedom) * errors
    overhead, cost = (
        Estimate(value=float(v), low=float(v - r), high=float(v + r))
        for v, r in zip(found, reach, strict=True)
    )
    straight = Line(overhead=overhead, cost=cost, bends=())
    bends = tuple((s.size, s.seconds / straight.at(s.size)) for s in steps)
    least = max(_BENDS, (floor or 1.0) - 1)
    off = tuple(
        bend
        for step, bend in zip(steps, bends, strict=True)
        if _misses(straight, step, least)
    )
    return Line(overhead=overhead, cost=cost, bends=off)


def _misses(straight: Line, step: StepTime, least: float) -> bool:
    """Whether a step is off the line by more than its interval and than ``least``."""
    expected = straight.at(step.size)
    if expected <= 0:
        return True
    within = step.low <= expected <= step.high
    return not within and abs(step.seconds / expected - 1) > least


def knee(measured: Measurement) -> Knee | None:
    """Find it; None while no size has a rate."""
    known = sized(measured.timings)
    if not known:
        return None
    ranked = measured.fastest(tuple(timing.variant for timing in known.values()))
    best = size_of(ranked[0].variant)
    size = min(size_of(timing.variant) for timing in ranked)
    compared = None if size == best else measured.compare(name_of(best), name_of(size))
    return Knee(
        size=size,
        best=best,
        against_best=compared,
        alone=len(ranked) == 1,
        sizes=tuple(known),
    )


def _student(freedom: int) -> float:
    """How many standard errors an interval reaches."""
    # Not with the module, which listing experiments would load.
    from scipy import stats

    return float(stats.t.ppf(_LEVEL, freedom))
