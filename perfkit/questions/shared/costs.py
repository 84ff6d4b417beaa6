"""What a step costs by the work in it: costs that add up, fitted to steps of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfkit.engine.statistics import Estimate, student

Floats = NDArray[np.float64]

# No step time is known better than this share of it.
_BEST_KNOWN = 1e-3
_DRAWS = 200
# Beyond this, in logarithms, a step's time is not known at all.
_WIDEST = 3.0
_ENDS = (2.5, 97.5)
_NORMAL = 1.96


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds of one of each kind of work, and what steps took over that of the fit."""

    each: tuple[Estimate, ...]
    misses: tuple[float, ...]

    @property
    def worst(self) -> float:
        """By how much the fit misses the worst step, as a share."""
        return max(abs(miss - 1) for miss in self.misses)

    def at(self, work: Sequence[float]) -> float:
        """Seconds of a step that does so much of each kind of work."""
        pairs = zip(self.each, work, strict=True)
        return sum(cost.value * amount for cost, amount in pairs)


def fitted(work: Sequence[Sequence[float]], steps: Sequence[Estimate]) -> Costs | None:
    """Fit the seconds of steps by weighted least squares, no cost below zero.

    The weights come from each step's own interval. How sure the costs are comes from
    fitting again to steps drawn around the fit, as wide as their intervals, or as the
    fit misses them where that is more. The work has the shape (steps, kinds). With no
    more steps than kinds it is None: as many costs always fit.
    """
    freedom = len(steps) - len(work[0]) if work else 0
    if freedom < 1:
        return None
    rows = np.array(work, float)
    seconds = np.array([step.value for step in steps])
    half = np.log([step.high / step.low for step in steps]) / 2
    spread = np.maximum(half / _NORMAL, _BEST_KNOWN)
    costs = _solved(rows, seconds, spread)
    expected = rows @ costs
    if not np.all(expected > 0):
        return None
    misses = seconds / expected
    scale = max(1.0, float((((misses - 1) / spread) ** 2).sum() / freedom) ** 0.5)
    wide = np.minimum(spread * scale * student(freedom) / _NORMAL, _WIDEST)
    noise = np.random.default_rng(0).standard_normal((_DRAWS, len(steps)))
    draws = [_solved(rows, draw, spread) for draw in expected * np.exp(wide * noise)]
    each = tuple(
        Estimate(value=float(v), low=float(min(low, v)), high=float(max(high, v)))
        for v, low, high in zip(costs, *np.percentile(draws, _ENDS, 0), strict=True)
    )
    return Costs(each=each, misses=tuple(misses.tolist()))


def _solved(rows: Floats, seconds: Floats, spread: Floats) -> Floats:
    # Not with the module, which listing experiments would load.
    from scipy.optimize import nnls

    weighted = rows / (seconds * spread)[:, None]
    # Counts of work are huge and their costs tiny: bring them to one size.
    sizes = np.linalg.norm(weighted, axis=0)
    costs, _ = nnls(weighted / sizes, 1 / spread)
    return np.asarray(costs / sizes)
