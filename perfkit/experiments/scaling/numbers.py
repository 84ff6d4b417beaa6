"""What a run on several devices shows in numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from perfkit.experiments.scaling.work import GPU, LOGICAL, DeviceKind, traffic
from perfkit.measure.statistics import Estimate

if TYPE_CHECKING:
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison, Timing


# The ways that differ from the plain one.
STRATEGY, OWN, FED = "strategy", "own gradients", "fed"
LINK = "the link alone"
# What preparing told of the run.
NOTE = "scaling"
SHARED = (
    "Logical devices share this processor: this shows how the method works and what "
    "the strategy itself costs, not what more GPUs would bring."
)
_NAME = re.compile(rf"(\d{{1,3}}) (GPU|{LOGICAL})s?(?:, ({STRATEGY}|{OWN}|{FED}))?")


@dataclass(frozen=True)
class Named:
    """What a name tells: the devices, how many, and the way ("" for the plain one)."""

    kind: DeviceKind
    count: int
    way: str


def name_of(kind: DeviceKind, count: int, way: str = "") -> str:
    """What the arm of so many devices is called."""
    return f"{of(kind, count)}{', ' * bool(way)}{way}"


def of(kind: DeviceKind, count: int) -> str:
    """So many devices, in words."""
    return f"{count} {kind}{'s' * (count != 1)}"


def read(name: str) -> Named | None:
    """Read the name of an arm; None where it is none of these."""
    found = _NAME.fullmatch(name)
    if found is None or int(found[1]) < 1:
        return None
    return Named(GPU if found[2] == GPU else LOGICAL, int(found[1]), found[3] or "")


_SOUND, _MOST = 1e15, 1e12


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
        timing = self.timing
        return Estimate(value=timing.rate, low=timing.low, high=timing.high)

    @property
    def efficiency(self) -> Estimate:
        """The share of ``count`` times one device's rate that they reach."""
        if self.speed_up is None:
            return Estimate(value=1.0, low=1.0, high=1.0)
        ends = (self.speed_up.ratio, self.speed_up.low, self.speed_up.high)
        value, low, high = (end / self.count for end in ends)
        return Estimate(value=value, low=low, high=high)


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
    def remainder(self) -> Estimate | None:
        """What was seen beyond what was predicted."""
        if self.predicted is None:
            return None
        return Estimate(
            value=self.seen.value - self.predicted.value,
            low=self.seen.low - self.predicted.high,
            high=self.seen.high - self.predicted.low,
        )

    @property
    def share(self) -> Estimate:
        """Of the step."""
        ends = (self.seen.value, self.seen.low, self.seen.high)
        value, low, high = (end / self.step for end in ends)
        return Estimate(value=value, low=low, high=high)


@dataclass(frozen=True, kw_only=True)
class Fed:
    """So many devices fed from a pipeline, against the same on batches at hand.

    Attributes:
        count: How many.
        wanted: The rate that they would take.
        got: The rate that they reach.
        against: The second against the first.
    """

    count: int
    wanted: Timing
    got: Timing
    against: Comparison

    @property
    def share(self) -> Estimate:
        """Of a step that goes to its input."""
        c = self.against
        return Estimate(value=1 - c.ratio, low=1 - c.high, high=1 - c.low)


def kind(measured: Measurement) -> DeviceKind:
    """What the devices of a run are; logical ones where nothing says otherwise."""
    found = (read(arm.name) for arm in measured.arms)
    return next((named.kind for named in found if named), LOGICAL)


def points(measured: Measurement, way: str = "") -> tuple[Point, ...]:
    """Every number of devices that was timed in a way, the fewest first.

    Without one device that was timed plainly there are none.
    """
    base = name_of(kind(measured), 1)
    if measured.timing(base) is None:
        return ()
    found = list[Point]()
    for count, timing in _timed(measured, way):
        itself = timing.variant == base
        speed_up = None if itself else measured.compare(timing.variant, base)
        if _is_sound(timing.rate) and (itself or _is_fair(speed_up)):
            found.append(Point(count=count, timing=timing, speed_up=speed_up))
    return tuple(found)


def strategy_cost(measured: Measurement) -> Comparison | None:
    """One device with the strategy against one without; None where not timed."""
    base = name_of(kind(measured), 1)
    found = measured.compare(name_of(kind(measured), 1, STRATEGY), base)
    return found if _is_fair(found) else None


def sums(measured: Measurement) -> tuple[Sum, ...]:
    """What summing gradients takes, for each number of devices that was timed."""
    told, of = _note(measured), kind(measured)
    found = list[Sum]()
    for count, timing in _timed(measured, ""):
        batch = _count_in(told.get("batches"), str(count))
        own = measured.compare(timing.variant, name_of(of, count, OWN))
        if own is None or not batch or not _is_fair(own) or not _is_sound(timing.rate):
            continue
        moved = traffic(_count_in(told, "weights"), of, count)
        found.append(
            Sum(
                count=count,
                step=batch / timing.rate,
                seen=_seen(batch, timing, own),
                predicted=_predicted(measured, moved),
                moved=moved,
            )
        )
    return tuple(found)


def fed(measured: Measurement) -> tuple[Fed, ...]:
    """What input takes, for each number of devices that was timed both ways."""
    found = list[Fed]()
    for count, got in _timed(measured, FED):
        wanted = measured.timing(name_of(kind(measured), count))
        against = wanted and measured.compare(got.variant, wanted.variant)
        if wanted and against and _is_fair(against) and _is_sound(got.rate):
            found.append(Fed(count=count, wanted=wanted, got=got, against=against))
    return tuple(found)


def link(measured: Measurement) -> Estimate | None:
    """Bytes per second that the link copied; None where it was not tried."""
    timing, each = measured.timing(LINK), _count_in(_note(measured), "link")
    if timing is None or not each or not _is_sound(timing.rate, timing.low):
        return None
    return Estimate(
        value=each * timing.rate, low=each * timing.low, high=each * timing.high
    )


def joined(measured: Measurement) -> tuple[str, ...]:
    """How the driver says that the GPUs are joined, a sentence for each pair."""
    told = _note(measured).get("joined")
    listed = told if isinstance(told, list | tuple) else ()
    return tuple(words for words in listed if isinstance(words, str))


def _timed(measured: Measurement, way: str) -> list[tuple[int, Timing]]:
    """The timings of a way of the run's devices, the fewest first."""
    of = kind(measured)
    found = ((read(t.variant), t) for t in measured.timings)
    mine = [(n.count, t) for n, t in found if n and n.kind == of and n.way == way]
    return sorted(mine, key=lambda one: one[0])


def _seen(batch: float, timing: Timing, own: Comparison) -> Estimate:
    """Seconds of a step that are gone without the sum.

    The ratio comes from rounds in which both met the same machine. The ends also hold
    the doubt in how long a step is.
    """
    usual, longest, shortest = (
        batch / rate for rate in (timing.rate, timing.low, timing.high)
    )
    least, most = 1 - own.high, 1 - own.low
    return Estimate(
        value=usual * (1 - own.ratio),
        low=least * (shortest if least > 0 else longest),
        high=most * (longest if most > 0 else shortest),
    )


def _predicted(measured: Measurement, moved: float) -> Estimate | None:
    rate = link(measured)
    if rate is None or not moved:
        return None
    return Estimate(
        value=moved / rate.value, low=moved / rate.high, high=moved / rate.low
    )


def _note(measured: Measurement) -> dict[str, Any]:
    found = measured.notes.get(NOTE)
    return found if isinstance(found, dict) else {}


def _count_in(table: Any, name: str) -> float:
    """A number of things in a note; 0 where there is none that makes sense."""
    found = table.get(name) if isinstance(table, dict) else None
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return float(found) if is_number and found and 0 < found < _MOST else 0.0


def _is_fair(compared: Comparison | None) -> bool:
    return compared is not None and _is_sound(compared.low, compared.high)


def _is_sound(*values: float) -> bool:
    """Whether a machine may do so much; a file may hold anything."""
    return all(1 / _SOUND < value < _SOUND for value in values)


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
    summed = {one.count: one for one in sums(measured)}
    every = fed(measured)
    return tuple(_limit(one, summed.get(one.count)) for one in every)


def _limit(at: Fed, summed: Sum | None) -> Limit:
    by_input = at.share.value if at.against.verdict == "slower" else 0.0
    by_sum = summed.share.value if summed and summed.seen.low > 0 else 0.0
    # A share of the longer, fed step against one of the shorter: in the same seconds.
    of_sum = by_sum * (1 - by_input)
    if max(by_input, of_sum) < _WORTH_NAMING:
        return Limit(count=at.count, what="neither")
    if by_input >= of_sum:
        return Limit(count=at.count, what="input", share=by_input)
    return Limit(count=at.count, what="sum", share=by_sum)
