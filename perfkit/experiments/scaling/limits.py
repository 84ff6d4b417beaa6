"""What keeps so many devices from more: their input, the sum of gradients, or neither?

Only what is shown counts, and only from a tenth of a step on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from perfkit.experiments.scaling import numbers

if TYPE_CHECKING:
    from perfkit.experiments.scaling.numbers import Fed, Sum
    from perfkit.measure.measurement import Measurement

What = Literal["input", "sum", "neither"]
_WORTH_NAMING = 0.10


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What holds up so many devices that are fed from the pipeline.

    Attributes:
        count: How many.
        what: The larger of the two costs that are shown; ``"neither"`` where none is.
        share: Of the step that it is a part of.
    """

    count: int
    what: What
    share: float = 0.0


def limits(measured: Measurement) -> tuple[Limit, ...]:
    """What holds up each number of devices that was timed fed."""
    sums = {one.count: one for one in numbers.sums(measured)}
    return tuple(_limit(fed, sums.get(fed.count)) for fed in numbers.fed(measured))


def _limit(fed: Fed, summed: Sum | None) -> Limit:
    by_input = fed.share.value if fed.against.verdict == "slower" else 0.0
    by_sum = summed.share.value if summed and summed.seen.low > 0 else 0.0
    # A share of the longer, fed step against one of the shorter: in the same seconds.
    of_sum = by_sum * (1 - by_input)
    if max(by_input, of_sum) < _WORTH_NAMING:
        return Limit(count=fed.count, what="neither")
    if by_input >= of_sum:
        return Limit(count=fed.count, what="input", share=by_input)
    return Limit(count=fed.count, what="sum", share=by_sum)
