"""Two devices at the same sizes, and the curve of what the second one gains.

Everything is read from a ``Measurement``: which device and which size a variant is, its
name tells.
"""

from __future__ import annotations

import collections
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perfkit.experiments.cpu_or_gpu.fit import Fit, Step, fitted
from perfkit.experiments.cpu_or_gpu.jobs import Size, cost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfkit.experiments.cpu_or_gpu.jobs import Cost
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison, Timing

# The first of each pair is the one to beat.
PAIRS = (("one core", "all cores"), ("CPU", "GPU"))
_NAME = re.compile(
    r"([\w ]{1,20}), (width ([\d,]{1,9})|[\w-]{1,40}), batch ([\d,]{1,9})"
)
_MOST, _SOUND = 1_000_000, 1e12
_POINTS = 240


@dataclass(frozen=True, kw_only=True)
class Point:
    """Both devices at one size.

    Attributes:
        what: What was trained, such as ``"width 512"`` or ``"small-cnn"``.
        batch: Examples of a step.
        size: The same where it is one of the dense networks; None for another model.
        first: The rate of the first device.
        second: The rate of the second device.
        gain: The second against the first.
    """

    what: str
    batch: int
    size: Size | None
    first: Timing
    second: Timing
    gain: Comparison


@dataclass(frozen=True, kw_only=True)
class Curve:
    """What the second device gains over the width, at one batch size.

    It goes through the measured gains. Between them it has the shape of the fitted
    costs, where there are enough sizes to fit them.

    Attributes:
        points: The sizes measured, by width.
        widths: Where the curve is known, shape (widths,).
        gain: Of the second device there, as a ratio.
        low: Lower end of its 95 % interval.
        high: Upper end of it.
    """

    points: tuple[Point, ...]
    widths: NDArray[np.float64]
    gain: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def batch(self) -> int:
        """Examples of a step."""
        return self.points[0].batch

    def at(self, width: float) -> tuple[float, float, float]:
        """Gain, low and high at a width within the curve."""
        x = np.log(self.widths)
        gain, low, high = (
            float(np.interp(np.log(width), x, y))
            for y in (self.gain, self.low, self.high)
        )
        return gain, low, high


def name_of(device: str, what: str, batch: int) -> str:
    """What the arm of a device, a network and a batch size is called."""
    return f"{device}, {what}, batch {batch:,}"


def wide(width: int) -> str:
    """What a dense network is called."""
    return f"width {width:,}"


def devices(measured: Measurement) -> tuple[str, str]:
    """The two devices of a run; the first pair where it names none."""
    named = {m[1] for t in measured.timings if (m := _NAME.fullmatch(t.variant))}
    found = (pair for pair in PAIRS if set(pair) & named)
    return next(found, PAIRS[0])


def points(measured: Measurement) -> tuple[Point, ...]:
    """Every size and model that both devices were timed with, in order."""
    first, second = devices(measured)
    found = [
        point
        for timing in measured.timings
        if (point := _point(measured, timing, first, second))
    ]
    return tuple(sorted(found, key=lambda p: (p.size is None, p.size or Size(0, 0))))


def fits(measured: Measurement) -> dict[str, Fit]:
    """What a step costs on each device, where enough sizes were timed."""
    steps = collections.defaultdict[str, list[Step]](list)
    known = devices(measured)
    for timing in measured.timings:
        device, _, size, _ = _read(timing.variant)
        if size and device in known and _is_sound(timing.low, timing.high):
            steps[device].append(
                Step(
                    cost=size.cost,
                    seconds=size.batch / timing.rate,
                    low=size.batch / timing.high,
                    high=size.batch / timing.low,
                )
            )
    found = {device: fitted(of) for device, of in steps.items()}
    return {device: fit for device, fit in found.items() if fit}


def curve(measured: Measurement) -> Curve | None:
    """The curve over widths, at the batch size that most widths have.

    None with fewer than three widths: through two there is a line, and no shape.
    """
    along = _along_width(points(measured))
    if len(along) < 3:
        return None
    batch, known = along[0].batch, np.log([p.size.width for p in along if p.size])
    x = np.linspace(known[0], known[-1], _POINTS)
    # What is measured is seen to lie on the curve.
    x = np.union1d(x, known)
    costs = [cost(width, batch) for width in np.exp(x)]
    shape = np.log(_ratio(fits(measured), devices(measured), costs))
    at = np.interp(known, x, shape)
    ends = [
        np.log([getattr(p.gain, end) for p in along])
        for end in ("ratio", "low", "high")
    ]
    gain, low, high = (np.exp(shape + np.interp(x, known, end - at)) for end in ends)
    return Curve(points=along, widths=np.exp(x), gain=gain, low=low, high=high)


def _point(
    measured: Measurement, timing: Timing, first: str, second: str
) -> Point | None:
    device, what, size, batch = _read(timing.variant)
    other = measured.timing(name_of(second, what, batch))
    if device != first or other is None:
        return None
    gain = measured.compare(other.variant, timing.variant)
    if gain is None or not _is_sound(timing.rate, other.rate, gain.low, gain.high):
        return None
    return Point(
        what=what, batch=batch, size=size, first=timing, second=other, gain=gain
    )


def _read(name: str) -> tuple[str, str, Size | None, int]:
    """Device, network, size and batch of an arm; empty where it is none of them."""
    said = _NAME.fullmatch(name)
    batch = _number(said[4]) if said else 0
    if said is None or not batch:
        return "", "", None, 0
    width = _number(said[3] or "")
    return said[1], said[2], Size(width, batch) if width else None, batch


def _is_sound(*values: float) -> bool:
    """Whether a machine may do so much; a file may hold anything."""
    return all(1 / _SOUND < value < _SOUND for value in values)


def _number(text: str) -> int:
    value = int(text.replace(",", "") or 0)
    return value if value <= _MOST else 0


def _along_width(known: Sequence[Point]) -> tuple[Point, ...]:
    sized = [point for point in known if point.size]
    counts = collections.Counter(point.batch for point in sized)
    usual = max(counts, key=lambda b: counts[b], default=0)
    return tuple(point for point in sized if point.batch == usual)


def _ratio(
    known: dict[str, Fit], pair: tuple[str, str], costs: Sequence[Cost]
) -> NDArray[np.float64]:
    """The gain by the fitted costs alone; 1 where they are not known."""
    if not set(pair) <= set(known):
        return np.ones(len(costs))
    first, second = (known[device] for device in pair)
    return np.array([first.at(cost) / second.at(cost) for cost in costs])
