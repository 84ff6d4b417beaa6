"""What a run on several devices shows in numbers."""

from dataclasses import dataclass
from typing import Any, Literal

from perfkit.experiments.scaling.work import GPU, LOGICAL, DeviceKind, traffic
from perfkit.findings.reading import note_as
from perfkit.measure.measurement import Measurement
from perfkit.measure.statistics import Comparison, Estimate, Timing

# How a variant differs from the plain one of so many devices, which has "".
STRATEGY, OWN, FED = "strategy", "own gradients", "fed"
LINK = "the link alone"
# What preparing told of the run.
NOTE = "scaling"
SHARED = (
    "Logical devices share this processor: this does not show what more GPUs bring."
)
_MOST_DEVICES = 999
# No machine does as much, and no note counts as much; a file may hold anything.
_SOUND, _MOST = 1e15, 1e12
_WORTH_NAMING = 0.10
Limit = Literal["input", "sum", "neither"]


@dataclass(frozen=True)
class Setup:
    """What is varied: the devices, how many, and how ("" for the plain one)."""

    kind: DeviceKind
    count: int
    how: str = ""

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{of(self.kind, self.count)}{', ' * bool(self.how)}{self.how}"


def of(kind: DeviceKind, count: int) -> str:
    """So many devices, in words."""
    return f"{count} {kind}{'s' * (count != 1)}"


_SETUPS = {
    setup.name: setup
    for kind in (GPU, LOGICAL)
    for count in range(1, _MOST_DEVICES + 1)
    for how in ("", STRATEGY, OWN, FED)
    for setup in [Setup(kind, count, how)]
}


@dataclass(frozen=True, kw_only=True)
class Point:
    """So many devices against one.

    Attributes:
        count: How many.
        timing: Their rate.
        speed_up: Against one device without a strategy; None for that one itself.
    """

    count: int
    timing: Timing
    speed_up: Comparison | None

    @property
    def rate(self) -> Estimate:
        """Examples per second."""
        return _estimate(self.timing.rate, self.timing.low, self.timing.high)

    @property
    def efficiency(self) -> Estimate:
        """The share of ``count`` times one device's rate that they reach."""
        found = self.speed_up
        ends = (found.ratio, found.low, found.high) if found else (1.0, 1.0, 1.0)
        return _estimate(*(end / self.count for end in ends))


@dataclass(frozen=True, kw_only=True)
class Sum:
    """The sum of gradients in a step: what a copy lets expect, and what was seen.

    Attributes:
        count: Of how many devices.
        step: Seconds of a step.
        seen: Seconds that a step takes beyond one without the sum.
        predicted: Seconds that the link needs for as many bytes; None without a link.
        moved: Bytes that pass the link.
    """

    count: int
    step: float
    seen: Estimate
    predicted: Estimate | None
    moved: float

    @property
    def share(self) -> float:
        """Of the step."""
        return self.seen.value / self.step


def kind(measured: Measurement) -> DeviceKind:
    """What the devices of a run are; logical ones where nothing says otherwise."""
    found = (_SETUPS.get(one.name) for one in measured.variants)
    return next((setup.kind for setup in found if setup), LOGICAL)


def points(measured: Measurement, how: str = "") -> tuple[Point, ...]:
    """Every number of devices that was timed in a way, the fewest first.

    Without one device that was timed plainly there are none.
    """
    base = Setup(kind(measured), 1).name
    if measured.timing(base) is None:
        return ()
    found = list[Point]()
    for count, timing in _timed(measured, how).items():
        itself = timing.variant == base
        speed_up = None if itself else _compare(measured, timing.variant, base)
        if itself or speed_up:
            found.append(Point(count=count, timing=timing, speed_up=speed_up))
    return tuple(found)


def strategy_cost(measured: Measurement) -> Comparison | None:
    """One device with the strategy against one without; None where not timed."""
    of_kind = kind(measured)
    with_strategy = Setup(of_kind, 1, STRATEGY).name
    return _compare(measured, with_strategy, Setup(of_kind, 1).name)


def sums(measured: Measurement) -> tuple[Sum, ...]:
    """What summing gradients takes, for each number of devices that was timed."""
    told, of_kind, rate = _note(measured), kind(measured), link(measured)
    found = list[Sum]()
    for count, timing in _timed(measured, "").items():
        batch = _number_in(told.get("batches"), str(count))
        own = _compare(measured, timing.variant, Setup(of_kind, count, OWN).name)
        if own is None or not batch:
            continue
        moved = traffic(_number_in(told, "weights"), of_kind, count)
        predicted = None
        if rate and moved:
            ends = (rate.value, rate.high, rate.low)
            predicted = _estimate(*(moved / end for end in ends))
        found.append(
            Sum(
                count=count,
                step=batch / timing.rate,
                seen=_seen(batch, timing, own),
                predicted=predicted,
                moved=moved,
            )
        )
    return tuple(found)


def fed(measured: Measurement) -> dict[int, Comparison]:
    """So many devices fed from a pipeline against the same on batches at hand."""
    plain = _timed(measured, "")
    return {
        count: against
        for count, timing in _timed(measured, FED).items()
        if count in plain
        and (against := _compare(measured, timing.variant, plain[count].variant))
    }


def limits(measured: Measurement) -> dict[int, tuple[Limit, float]]:
    """What holds up each number of devices that was timed fed, and its share of a step.

    It is the larger of the two costs where one is shown to be worth naming.
    """
    summed = {one.count: one.share for one in sums(measured) if one.seen.low > 0}
    found = dict[int, tuple[Limit, float]]()
    for count, against in fed(measured).items():
        by_input = 1 - against.ratio if against.verdict == "slower" else 0.0
        by_sum = summed.get(count, 0.0)
        # A share of the longer, fed step against one of the shorter: in the same
        # seconds.
        of_sum = by_sum * (1 - by_input)
        found[count] = ("sum", by_sum) if of_sum > by_input else ("input", by_input)
        if max(by_input, of_sum) < _WORTH_NAMING:
            found[count] = ("neither", 0.0)
    return found


def link(measured: Measurement) -> Estimate | None:
    """Bytes per second that the link copied; None where it was not tried."""
    timing, each = measured.timing(LINK), _number_in(_note(measured), "link")
    if timing is None or not each or not _is_sound(timing.rate, timing.low):
        return None
    return _estimate(*(each * end for end in (timing.rate, timing.low, timing.high)))


def joined(measured: Measurement) -> tuple[str, ...]:
    """How the driver says that the GPUs are joined, a sentence for each pair."""
    return note_as(tuple[str, ...], _note(measured).get("joined")) or ()


def _timed(measured: Measurement, how: str) -> dict[int, Timing]:
    """The timings of a way of the run's devices, the fewest first."""
    of_kind = kind(measured)
    found = [(_SETUPS.get(t.variant), t) for t in measured.timings]
    mine = {
        setup.count: timing
        for setup, timing in found
        if setup and (setup.kind, setup.how) == (of_kind, how)
        if _is_sound(timing.rate)
    }
    return dict(sorted(mine.items()))


def _compare(measured: Measurement, one: str, other: str) -> Comparison | None:
    found = measured.compare(one, other)
    return found if found and _is_sound(found.low, found.high) else None


def _seen(batch: float, timing: Timing, own: Comparison) -> Estimate:
    """Seconds of a step that are gone without the sum.

    The ratio comes from rounds in which both met the same machine. The ends also hold
    the doubt in how long a step is.
    """
    usual, longest, shortest = (
        batch / rate for rate in (timing.rate, timing.low, timing.high)
    )
    least, most = 1 - own.high, 1 - own.low
    return _estimate(
        usual * (1 - own.ratio),
        least * (shortest if least > 0 else longest),
        most * (longest if most > 0 else shortest),
    )


def _estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value=value, low=low, high=high)


def _note(measured: Measurement) -> dict[str, Any]:
    return note_as(dict[str, Any], measured.notes.get(NOTE)) or {}


def _number_in(table: Any, name: str) -> float:
    """A number of things in a note; 0 where there is none that makes sense."""
    found = note_as(float, table.get(name)) if isinstance(table, dict) else None
    return found if found and 0 < found < _MOST else 0.0


def _is_sound(*values: float) -> bool:
    return all(1 / _SOUND < value < _SOUND for value in values)
