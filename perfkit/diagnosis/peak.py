"""What share of the machine's measured peak a training reaches.

The peak is a large matrix product, timed in the same run: what the machine does at best
with the same kind of numbers. No training reaches all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.experiments.shared import probe_gpu as gpu
from perfkit.experiments.shared import probe_products as products
from perfkit.measure.steady import steady
from perfkit.measure.tries import Try
from perfkit.units import is_known

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perfkit.diagnosis.facts import Facts
    from perfkit.findings.diagnosis import Seconds
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.tries import Tries

# The fact of a record that holds it.
SHARE = "share_of_peak"
_MOST = 10.0
NAME = "a large matrix product"
# Making it ready and timing it takes so long.
TAKES_S = 2.5
_TIMED_S = 1.0
_KIND = "float32"


def can_be_told(facts: Facts) -> bool:
    """Whether the arithmetic of a step is known, and of the kind that is timed."""
    return facts.flop is not None and facts.policy == _KIND


def tries(facts: Facts, *, gpus: int) -> Tries:
    """Time the product once, after the rounds."""
    if can_be_told(facts):
        work = gpu.product if gpus else products.tensorflow_product
        yield Try(name=NAME, work=lambda: work(_KIND), seconds=_TIMED_S)


def flop_rate(measured: Measurement) -> float | None:
    """Operations per second of the product; None where it was not timed."""
    timed = [steady(trial) for trial in measured.of(NAME)]
    rates = [one.rate for one in timed if one is not None]
    return max(rates, default=None)


def share(step: Seconds | None, measured: Measurement, facts: Facts) -> float | None:
    """What share of that rate a step as given reaches; None where nobody knows."""
    peak = flop_rate(measured)
    if step is None or not is_known(step.low, step.high):
        return None
    if facts.flop is None or not peak or not can_be_told(facts):
        return None
    return facts.flop / step.median_s / peak


def known(facts: Mapping[str, Any]) -> float | None:
    """The share as a record keeps it; None where it holds none that can be."""
    reached = facts.get(SHARE)
    sound = isinstance(reached, float) and 0 < reached < _MOST
    return reached if sound else None


def in_words(reached: float) -> str:
    """Say it in a sentence."""
    return (
        f"It reaches {units.percent(reached)} of what {NAME} reaches here, by the "
        "shapes of its own products."
    )
