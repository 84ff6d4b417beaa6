"""What a run over sizes on two devices shows in numbers."""

import collections
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from perfkit import units
from perfkit.engine.measurement import Measurement
from perfkit.engine.statistics import WORTH_KNOWING, Comparison
from perfkit.questions.cpu_or_gpu.work import Size, cost
from perfkit.questions.shared.costs import Costs, Floats, fitted

# The first of each pair is the one to beat.
PAIRS = (("one core", "all cores"), ("CPU", "GPU"))
PAYS = WORTH_KNOWING
# No machine gains so much, nor does so much in a second; a file may hold anything.
_SOUND = 1e12
_POINTS, _FEWEST_WIDTHS = 240, 3


def name_of(device: str, network: str, batch: int) -> str:
    """What the variant of a device, a network and a batch size is called."""
    return f"{device}, {network}, batch {batch:,}"


@dataclass(frozen=True)
class Point:
    """What the second device gains over the first at one size."""

    size: Size
    gain: Comparison

    @property
    def says(self) -> Literal["pays", "does not", "open"]:
        """Whether the second device pays here."""
        if self.gain.verdict == "faster" and self.gain.low >= PAYS:
            return "pays"
        return "does not" if self.gain.high < PAYS else "open"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """What the second device gains over the width, at one batch size.

    It goes through the measured gains. Between them it has the shape of the fitted
    costs, where there are enough sizes to fit them.

    Attributes:
        points: The sizes measured, by width.
        fits: What a step costs on each device that was timed with enough sizes.
    """

    points: tuple[Point, ...]
    fits: tuple[Costs, ...]

    @property
    def batch(self) -> int:
        """Examples of a step."""
        return self.points[0].size.batch

    @functools.cached_property
    def widths(self) -> Floats:
        """Where it is known: shape (widths,), those that were measured among them."""
        nodes = self._nodes
        x = np.union1d(np.linspace(nodes[0], nodes[-1], _POINTS), nodes)
        return np.asarray(np.exp(x))

    @functools.cached_property
    def gains(self) -> Floats:
        """The gain there and the ends of its 95 % interval, shape (3, widths)."""
        x, nodes = np.log(self.widths), self._nodes
        shape = np.zeros(len(x))
        if len(self.fits) == len(PAIRS[0]):
            first, second = self.fits
            costs = [cost(width, self.batch) for width in self.widths]
            shape = np.log([first.at(c) / second.at(c) for c in costs])
        gains = [(p.gain.ratio, p.gain.low, p.gain.high) for p in self.points]
        beside = np.log(gains).T - np.interp(nodes, x, shape)
        lines = [shape + np.interp(x, nodes, line) for line in beside]
        return np.asarray(np.exp(lines))

    @property
    def _nodes(self) -> Floats:
        return np.asarray(np.log([point.size.width for point in self.points]))


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """Where the second device begins to pay.

    Attributes:
        kind: ``"from"`` a width on, ``"always"`` or ``"never"`` within what was tried,
            ``"mixed"`` where it pays at some width and not at a larger one, ``"open"``
            where noise hides it.
        width: From where on, for ``"from"``.
        low: Lower end of its 95 % interval; 0 where it may be below all widths.
        high: Upper end of it.
    """

    kind: Literal["from", "always", "never", "mixed", "open"]
    width: float = 0.0
    low: float = 0.0
    high: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether its interval says enough."""
        return units.is_known(self.low, self.high)

    @property
    def place(self) -> str:
        """From where on it pays, in two digits: no more is known of crossing lines."""
        if self.is_known:
            return f"from about width {units.significant(self.width, 2)} up"
        return f"from width {units.significant(self.high, 2)} up, or earlier"


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run shows.

    Attributes:
        devices: The two that are compared.
        points: Every size that both were timed with, in order.
        fits: What a step, a byte and a FLOP cost on each that has enough sizes.
        curve: What the second gains over the width, at the batch size that most widths
            have; None with fewer than three widths: through two there is a line, and
            no shape.
        crossing: Where that begins to pay.
    """

    devices: tuple[str, str]
    points: tuple[Point, ...]
    fits: dict[str, Costs]
    curve: Curve | None
    crossing: Crossing

    @property
    def off_curve(self) -> tuple[Point, ...]:
        """The sizes beside the curve, at other batch sizes."""
        batch = self.curve.batch if self.curve else 0
        return tuple(p for p in self.points if p.size.batch != batch)


def result(measured: Measurement, sizes: Sequence[Size]) -> Result:
    """Work it out."""
    pair, fits = PAIRS[0], dict[str, Costs]()
    for device in itertools.chain.from_iterable(PAIRS):
        steps = {
            size.cost: timing.seconds(size.batch)
            for size in sizes
            if (timing := measured.timing(name_of(device, size.name, size.batch)))
            and _is_sound(timing.low, timing.high)
        }
        if steps:
            pair = next(names for names in PAIRS if device in names)
        if fit := fitted([*steps], [*steps.values()]):
            fits[device] = fit
    points = tuple(
        Point(size, gain)
        for size in sorted(sizes)
        if (gain := _gain(measured, pair, size.name, size.batch))
    )
    counts = collections.Counter(point.size.batch for point in points)
    ((batch, count),) = counts.most_common(1) or [(0, 0)]
    curve: Curve | None = None
    if count >= _FEWEST_WIDTHS:
        along = tuple(point for point in points if point.size.batch == batch)
        both = tuple(fits[device] for device in pair if device in fits)
        curve = Curve(points=along, fits=both)
    return Result(
        devices=pair,
        points=points,
        fits=fits,
        curve=curve,
        crossing=_crossing(curve) if curve else Crossing(kind="open"),
    )


def _gain(
    measured: Measurement, pair: tuple[str, str], network: str, batch: int
) -> Comparison | None:
    """The second device against the first; None where both were not timed."""
    first, second = (name_of(device, network, batch) for device in pair)
    gain = measured.compare(second, first)
    return gain if gain and _is_sound(gain.low, gain.ratio, gain.high) else None


def _is_sound(*values: float) -> bool:
    return all(1 / _SOUND < value < _SOUND for value in values)


def _crossing(curve: Curve) -> Crossing:
    """Find where the curve begins to pay, within the widths that were measured."""
    answers = [point.says for point in curve.points]
    if len(set(answers)) == 1 and answers[0] != "open":
        return Crossing(kind="always" if answers[0] == "pays" else "never")
    after = answers[answers.index("pays") :] if "pays" in answers else ["open"]
    if "does not" in after:
        return Crossing(kind="mixed")
    if "open" in after:
        return Crossing(kind="open")
    gain, low, high = curve.gains
    # The upper end of a gain pays first.
    width, first, last = (_rises(curve.widths, line) for line in (gain, high, low))
    is_lowest = bool((high >= PAYS).all())
    return Crossing(kind="from", width=width, low=0 if is_lowest else first, high=last)


def _rises(widths: Floats, gain: Floats) -> float:
    """The width from which on all gains pay; 0 where the last does not."""
    below = np.flatnonzero(gain < PAYS)
    if not len(below):
        return float(widths[0])
    if below[-1] == len(gain) - 1:
        return 0.0
    ends = slice(below[-1], below[-1] + 2)
    return float(np.exp(np.interp(PAYS, gain[ends], np.log(widths[ends]))))
