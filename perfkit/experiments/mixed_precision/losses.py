"""Do two precisions learn the same? Trainings from the same weights, held in pairs.

A pair shares its seed: its weights and its examples. So what differs within a pair is
the precision alone. How much another seed changes says whether that matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from perfkit.experiments.shared.precision import BFLOAT16, FLOAT16, FLOAT32, NO_TF32

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from perfkit.experiments.mixed_precision.told import Curve

Alike = Literal[
    "equal within rounding",
    "less apart than two seeds",
    "differs",
    "too noisy to say",
    "too few trainings to say",
    "lost",
]
# Half the distance between 1 and the next number: what one rounding changes at most.
ROUNDING = {BFLOAT16: 2.0**-8, FLOAT16: 2.0**-11, NO_TF32: 2.0**-11}
_LEVEL = 0.975


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """The trainings of one precision held against those of float32.

    Attributes:
        precision: Which.
        seeds: Of the trainings, one a pair.
        steps: Training steps at each loss that all of them reached.
        losses: One row a seed; each number is the mean of the steps since the last.
        usual: The same of float32, with the same seeds.
        lost: Whether the loss of any became something that is no number.
    """

    precision: str
    seeds: tuple[int, ...]
    steps: tuple[int, ...]
    losses: NDArray[np.float64]
    usual: NDArray[np.float64]
    lost: bool = False

    @property
    def apart(self) -> NDArray[np.float64]:
        """What the precision adds to the loss, one row a seed."""
        return self.losses - self.usual

    @property
    def largest(self) -> float:
        """The largest difference anywhere, as a share of float32's loss."""
        return float(np.max(np.abs(self.apart) / np.abs(self.usual)))

    @property
    def difference(self) -> float:
        """What the precision adds to the last loss, the mean over the seeds."""
        return float(self.apart[:, -1].mean())

    @property
    def half_width(self) -> float | None:
        """Half of the 95 % interval of ``difference``; None for one seed."""
        # Not with the module: it takes most of a second.
        from scipy import stats

        last = self.apart[:, -1]
        if len(last) < 2:
            return None
        spread = last.std(ddof=1) / np.sqrt(len(last))
        return float(stats.t.ppf(_LEVEL, len(last) - 1) * spread)

    @property
    def seeds_differ(self) -> float:
        """What another seed changes in float32's last loss: its whole range."""
        return float(np.ptp(self.usual[:, -1]))

    @property
    def alike(self) -> Alike:
        """Whether it learns what float32 learns."""
        if self.lost:
            return "lost"
        if self.largest <= ROUNDING.get(self.precision, 0.0):
            return "equal within rounding"
        if self.half_width is None:
            return "too few trainings to say"
        if abs(self.difference) + self.half_width <= self.seeds_differ:
            return "less apart than two seeds"
        shown = abs(self.difference) > max(self.half_width, self.seeds_differ)
        return "differs" if shown else "too noisy to say"


def pairs(curves: Iterable[Curve]) -> tuple[Pairs, ...]:
    """Hold every precision against float32, in the order in which they learnt."""
    by_name: dict[str, dict[int, Curve]] = {}
    for curve in curves:
        by_name.setdefault(curve.precision, {})[curve.seed] = curve
    usual = by_name.pop(FLOAT32, {})
    found = (_pairs(name, known, usual) for name, known in by_name.items())
    return tuple(one for one in found if one is not None)


def _pairs(name: str, known: dict[int, Curve], usual: dict[int, Curve]) -> Pairs | None:
    seeds = sorted(
        seed
        for seed in known.keys() & usual.keys()
        if known[seed].every == usual[seed].every
    )
    if not seeds:
        return None
    both = [one[seed] for one in (known, usual) for seed in seeds]
    count = min(len(curve.losses) for curve in both)
    every = known[seeds[0]].every
    cut = [[one[seed].losses[:count] for seed in seeds] for one in (known, usual)]
    lost = any(known[seed].lost for seed in seeds)
    if count < 2 or not np.all(np.array(cut[1]) > 0):
        return None
    return Pairs(
        precision=name,
        seeds=tuple(seeds),
        steps=tuple(every * look for look in range(1, count + 1)),
        losses=np.array(cut[0]),
        usual=np.array(cut[1]),
        lost=lost,
    )
