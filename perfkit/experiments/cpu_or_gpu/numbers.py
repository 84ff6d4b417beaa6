"""What a run over sizes on two devices shows in numbers."""

from __future__ import annotations

import collections
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from perfkit.experiments.cpu_or_gpu.work import Size, cost
from perfkit.measure.statistics import WORTH_KNOWING, Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfkit.experiments.cpu_or_gpu.work import Cost
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
    launch, per_byte, per_flop = _fit_between(found, draws)
    return Fit(
        launch=launch,
        per_byte=per_byte,
        per_flop=per_flop,
        misses=float(np.abs(misses).max()),
        draws=draws,
    )


def _fit_between(
    found: NDArray[np.float64], draws: NDArray[np.float64]
) -> list[Estimate]:
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
    return _where_between(widths, gain, int(below[-1]))


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
    known, pair = fits(measured), devices(measured)
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
    return _where_between(widths, gain, max(0, int(paying[0]) - 1))


def _where_between(
    widths: NDArray[np.float64], gain: NDArray[np.float64], number: int
) -> float:
    """Where a gain that rises reaches what pays, after a place in the list."""
    here = slice(number, number + 2)
    return float(np.exp(np.interp(PAYS, gain[here], np.log(widths[here]))))
