"""A step's time on one device, as ``launch + bytes / bandwidth + flops / rate``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perfkit.measure.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfkit.experiments.cpu_or_gpu.jobs import Cost

# Three numbers go through any three points.
_FEWEST = 4
# No step time is known better than this share of it.
_BEST_KNOWN = 1e-3
_DRAWS = 200
# Beyond this, in logarithms, a step's time is not known at all.
_WIDEST = 3.0
_ENDS = (2.5, 97.5)
_LEVEL, _NORMAL = 0.975, 1.96


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of known work, and its seconds with their 95 % interval."""

    cost: Cost
    seconds: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What a device costs.

    Attributes:
        launch: Seconds of a step before any work.
        per_byte: Seconds of each byte.
        per_flop: Seconds of each multiplication or addition.
        misses: By how much it misses the worst step it was fitted to, as a share.
        draws: The three numbers again, refitted to steps drawn anew, shape (draws, 3).
    """

    launch: Estimate
    per_byte: Estimate
    per_flop: Estimate
    misses: float
    draws: NDArray[np.float64]

    def at(self, cost: Cost) -> float:
        """Seconds of a step of that work."""
        parts = (self.launch.value, self.per_byte.value, self.per_flop.value)
        return float(_row(cost) @ np.array(parts))

    def drawn(self, cost: Cost) -> NDArray[np.float64]:
        """The same by each of the draws, shape (draws,)."""
        return np.asarray(self.draws @ _row(cost))

    def launch_share(self, cost: Cost) -> float:
        """How much of a step of that work is launch."""
        return self.launch.value / self.at(cost)


def fitted(steps: Sequence[Step], seed: int = 0) -> Fit | None:
    """Fit by weighted least squares, no cost below zero; None with too few steps.

    The weights come from each step's own interval. How sure the three numbers are comes
    from fitting again to steps drawn around the fit, as wide as their intervals, or as
    the fit misses them where that is more.
    """
    if len(steps) < _FEWEST:
        return None
    rows = np.stack([_row(step.cost) for step in steps])
    seconds = np.array([step.seconds for step in steps])
    half = np.log([step.high / step.low for step in steps]) / 2
    spread = np.maximum(half / _NORMAL, _BEST_KNOWN)
    found = _solved(rows, seconds, spread)
    expected = rows @ found
    if not np.all(expected > 0):
        return None
    misses = seconds / expected - 1
    freedom = len(steps) - rows.shape[1]
    scale = max(1.0, float(((misses / spread) ** 2).sum() / freedom) ** 0.5)
    wide = np.minimum(spread * scale * _student(freedom) / _NORMAL, _WIDEST)
    noise = np.random.default_rng(seed).standard_normal((_DRAWS, len(steps)))
    anew = expected * np.exp(wide * noise)
    draws = np.stack([_solved(rows, drawn, spread) for drawn in anew])
    launch, per_byte, per_flop = _between(found, draws)
    return Fit(
        launch=launch,
        per_byte=per_byte,
        per_flop=per_flop,
        misses=float(np.abs(misses).max()),
        draws=draws,
    )


def _between(found: NDArray[np.float64], draws: NDArray[np.float64]) -> list[Estimate]:
    """Each fitted number between the ends of its draws."""
    ends = np.percentile(draws, _ENDS, axis=0)
    return [
        Estimate(value=float(v), low=float(min(low, v)), high=float(max(high, v)))
        for v, low, high in zip(found, *ends, strict=True)
    ]


def _row(cost: Cost) -> NDArray[np.float64]:
    return np.array([1.0, cost.traffic, cost.flops])


def _solved(
    rows: NDArray[np.float64], seconds: NDArray[np.float64], spread: NDArray[np.float64]
) -> NDArray[np.float64]:
    # Not with the module, which listing experiments would load.
    from scipy.optimize import nnls

    weighted = rows / (seconds * spread)[:, None]
    # Counts of work are huge and their costs tiny: bring them to one size.
    sizes = np.linalg.norm(weighted, axis=0)
    found, _ = nnls(weighted / sizes, 1 / spread)
    return np.asarray(found / sizes)


def _student(freedom: int) -> float:
    """How many standard errors an interval reaches."""
    from scipy import stats

    return float(stats.t.ppf(_LEVEL, freedom))
