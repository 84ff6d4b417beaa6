"""From which width on does the second device pay?

It pays where it trains at least a tenth faster: a smaller gain is worth no change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from perfkit.experiments.cpu_or_gpu import numbers
from perfkit.experiments.cpu_or_gpu.jobs import cost
from perfkit.measure.statistics import WORTH_KNOWING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfkit.experiments.cpu_or_gpu.fit import Fit
    from perfkit.experiments.cpu_or_gpu.numbers import Curve, Point
    from perfkit.measure.measurement import Measurement

PAYS = WORTH_KNOWING
Kind = Literal["from", "always", "never", "mixed", "open"]
Says = Literal["pays", "does not", "open"]


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """Where the second device begins to pay.

    Attributes:
        kind: ``"from"`` a width on, ``"always"`` or ``"never"`` within what was tried,
            ``"mixed"`` where it pays at some width and not at a larger one, ``"open"``
            where noise hides it.
        width: From where on, for ``"from"``.
        low: Lower end of its 95 % interval; None where it may be below all widths.
        high: Upper end of it.
    """

    kind: Kind
    width: float | None = None
    low: float | None = None
    high: float | None = None


def says(point: Point) -> Says:
    """Whether the second device pays at a size that was measured."""
    gain = point.gain
    if gain.verdict == "faster" and gain.low >= PAYS:
        return "pays"
    return "does not" if gain.high < PAYS else "open"


def crossing(curve: Curve) -> Crossing:
    """Find where the curve begins to pay, within the widths that were measured."""
    said = [says(point) for point in curve.points]
    if len(set(said)) == 1 and said[0] != "open":
        return Crossing(kind="always" if said[0] == "pays" else "never")
    if "pays" not in said:
        return Crossing(kind="open")
    after = said[said.index("pays") :]
    if "does not" in after:
        return Crossing(kind="mixed")
    if "open" in after:
        return Crossing(kind="open")
    return _from(curve)


def _from(curve: Curve) -> Crossing:
    """The last place where each of the three lines rises above what pays."""
    middle = _rises(curve.widths, curve.gain)
    low, high = _rises(curve.widths, curve.high), _rises(curve.widths, curve.low)
    width = middle or float(curve.widths[0])
    return Crossing(kind="from", width=width, low=low, high=high or width)


def _rises(widths: NDArray[np.float64], gain: NDArray[np.float64]) -> float | None:
    """The width from which on all gains pay; None where all of them do."""
    below = np.flatnonzero(gain < PAYS)
    if not len(below) or below[-1] == len(gain) - 1:
        return None
    return _between(widths, gain, int(below[-1]))


def boundary(
    measured: Measurement, batches: Sequence[float], widest: float
) -> list[tuple[float, float, float] | None]:
    """Where the second device begins to pay at each batch size, by the fits alone.

    Args:
        measured: The run.
        batches: Examples of a step.
        widest: The largest width to look at.

    Returns:
        Width, low and high for each batch; None where it never pays up to there, or
        where not even that is sure.
    """
    known, pair = numbers.fits(measured), numbers.devices(measured)
    if not set(pair) <= set(known):
        return [None for _ in batches]
    widths = np.geomspace(1, widest, 160)
    first, second = (known[device] for device in pair)
    return [_edge(first, second, widths, batch) for batch in batches]


def _edge(
    first: Fit, second: Fit, widths: NDArray[np.float64], batch: float
) -> tuple[float, float, float] | None:
    costs = [cost(width, batch) for width in widths]
    middle = _first_pays(widths, np.array([first.at(c) / second.at(c) for c in costs]))
    drawn = np.array([first.drawn(c) / second.drawn(c) for c in costs]).T
    edges = [_first_pays(widths, gains) for gains in drawn]
    if middle is None or sum(edge is None for edge in edges) > len(edges) // 40:
        return None
    low, high = np.percentile([edge for edge in edges if edge], (2.5, 97.5))
    return middle, float(min(low, middle)), float(max(high, middle))


def _first_pays(widths: NDArray[np.float64], gain: NDArray[np.float64]) -> float | None:
    paying = np.flatnonzero(gain >= PAYS)
    if not len(paying):
        return None
    return _between(widths, gain, max(0, int(paying[0]) - 1))


def _between(
    widths: NDArray[np.float64], gain: NDArray[np.float64], number: int
) -> float:
    """Where a gain that rises reaches what pays, after a place in the list."""
    here = slice(number, number + 2)
    return float(np.exp(np.interp(PAYS, gain[here], np.log(widths[here]))))
