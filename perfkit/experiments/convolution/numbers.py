"""What a run of convolutions shows besides the rates: shares of the limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from perfkit.experiments.convolution.variants import BASELINE, OWN, VARIANTS
from perfkit.measure.statistics import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perfkit.experiments.convolution.problem import Problem
    from perfkit.experiments.convolution.variants import Method
    from perfkit.measure.measurement import Measurement


ARITHMETIC, BFLOAT16 = "arithmetic limit", "bfloat16 limit"
MEMORY = "memory limit"

Bound = Literal["compute", "memory", "overhead", "none"]
# What takes this share of a call's time holds it up.
_HOLDS_UP = 0.5
# What is faster than the memory was measured to be has its numbers in the caches.
_CACHED = 1.1


@dataclass(frozen=True)
class Speed:
    """How near a variant comes to what holds it up.

    Attributes:
        variant: Its name.
        shares: Of what a large matrix product reaches, of the memory's speed, and of a
            call that is left without work, as far as they are known.
    """

    variant: str
    shares: Mapping[Bound, Estimate]

    @property
    def bound(self) -> Bound:
        """What holds it up, as far as one thing does."""
        values = {bound: share.value for bound, share in self.shares.items()}
        if values.get("memory", 0.0) > _CACHED:
            del values["memory"]
        values = {b: value for b, value in values.items() if value >= _HOLDS_UP}
        return max(values, key=values.__getitem__) if values else "none"


def speeds(measured: Measurement, problem: Problem) -> dict[str, Speed]:
    """How near each comes to the limits, the most arithmetic per second first."""
    found = {
        timing.variant: timing.rate * _method(timing.variant).flops(problem)
        for timing in measured.timings
        if timing.variant in (OWN, *VARIANTS)
    }
    names = sorted(found, key=found.__getitem__, reverse=True)
    return {name: Speed(name, _shares(measured, problem, name)) for name in names}


def _shares(
    measured: Measurement, problem: Problem, name: str
) -> dict[Bound, Estimate]:
    method, whole = _method(name), VARIANTS[BASELINE]
    arithmetic = BFLOAT16 if method.precision == "bfloat16" else ARITHMETIC
    # A limit's rate counts what an example of the baseline takes.
    limits: dict[Bound, tuple[str, float]] = {
        "compute": (arithmetic, method.flops(problem) / whole.flops(problem)),
        "memory": (MEMORY, method.traffic(problem) / whole.traffic(problem)),
    }
    found: dict[Bound, Estimate] = {}
    for bound, (limit, work) in limits.items():
        of = measured.compare(name, limit)
        if of and of.is_judged:
            value, low, high = (work * end for end in (of.ratio, of.low, of.high))
            found[bound] = Estimate(value=value, low=low, high=high)
    overhead = measured.notes.get("overhead", {}).get(name)
    if overhead is not None:
        found["overhead"] = Estimate(value=overhead, low=overhead, high=overhead)
    return found


def _method(name: str) -> Method:
    """What a variant computes; a function of one's own does what the baseline does."""
    return VARIANTS.get(name, VARIANTS[BASELINE])
