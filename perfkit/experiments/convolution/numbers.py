"""What a run of convolutions shows besides the rates: speeds, shares, first calls."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from perfkit.experiments.convolution.problem import FLOAT, wait_for_device
from perfkit.experiments.convolution.ways import BASELINE, OWN, WAYS
from perfkit.measure.statistics import WORTH_KNOWING
from perfkit.measure.tick import READY, Tick, every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from perfkit.experiments.convolution.problem import Problem
    from perfkit.experiments.convolution.ways import Way
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparing, Comparison
    from perfkit.measure.tick import Yielded


ARITHMETIC, BFLOAT16 = "arithmetic limit", "bfloat16 limit"
MEMORY = "memory limit"

# Matrices that keep all cores busy for some milliseconds, and a GPU as well.
_SIDE, _SIDE_ON_GPU = 1024, 8192
# Larger than what the caches of a processor hold.
_NUMBERS = 2**25


def arithmetic(flops: float, precision: str = "float32") -> Iterator[Yielded]:
    """Multiply large matrices, over and over.

    Args:
        flops: Multiplications and additions that count as one example.
        precision: Of the matrices.
    """
    import tensorflow as tf

    from perfkit.experiments.convolution.tensors import placed

    side = _SIDE_ON_GPU if tf.config.list_logical_devices("GPU") else _SIDE
    matrix = placed(tf.random.normal([side, side]), precision)
    yield READY
    yield from _counted(lambda: tf.matmul(matrix, matrix), 2 * side**3 / flops)


def memory(traffic: float) -> Iterator[Yielded]:
    """Add one large row of numbers to another, in place, over and over.

    Args:
        traffic: Bytes that count as one example.
    """
    import tensorflow as tf

    sums, ones = tf.Variable(tf.zeros([_NUMBERS])), tf.ones([_NUMBERS])
    yield READY
    # Two are read and one is written.
    moved = 3 * FLOAT * _NUMBERS
    yield from _counted(lambda: sums.assign_add(ones), moved / traffic)


def _counted(step: Callable[[], object], examples: float) -> Iterator[Yielded]:
    return every(_steps(step, examples), sync=wait_for_device)


def _steps(step: Callable[[], object], examples: float) -> Iterator[Tick]:
    done = counted = 0.0
    while True:
        step()
        done += examples
        # Examples are counted whole; what is left over counts next time.
        yield Tick(int(done - counted))
        counted += int(done - counted)


Bound = Literal["compute", "memory", "overhead", "none"]
# A share, and the ends of its interval.
_Share = tuple[float, float, float]

# What takes this share of a call's time holds it up.
_HOLDS_UP = 0.5
# What is faster than the memory was measured to be has its numbers in the caches.
_CACHED = 1.1
_TAIL = 0.025


@dataclass(frozen=True, kw_only=True)
class Speed:
    """How near a way comes to what holds it up.

    Attributes:
        variant: Its name.
        gflops: Arithmetic per second, in thousand millions.
        compute: Its share of what a large matrix product reaches; None if unknown.
        memory: Its share of the memory's speed; None if unknown.
        overhead: The share of a call that a call without work takes; None if unknown.
        within: The 95 % intervals of ``compute`` and ``memory``, where they are known.
    """

    variant: str
    gflops: float
    compute: float | None
    memory: float | None
    overhead: float | None
    within: Mapping[Bound, tuple[float, float]]

    @property
    def bound(self) -> Bound:
        """What holds it up, as far as one thing does."""
        memory = self.memory or 0.0
        shares: dict[Bound, float] = {
            "compute": self.compute or 0.0,
            "memory": memory if memory <= _CACHED else 0.0,
            "overhead": self.overhead or 0.0,
        }
        most = max(shares, key=shares.__getitem__)
        return most if shares[most] >= _HOLDS_UP else "none"


def contenders(measured: Measurement) -> tuple[str, ...]:
    """The variants that were timed and may be called the fastest way."""
    return tuple(
        timing.variant
        for timing in measured.timings
        if timing.variant == OWN
        or (timing.variant in WAYS and WAYS[timing.variant].counts)
    )


def speeds(measured: Measurement, problem: Problem) -> list[Speed]:
    """How near each way comes to the limits, the fastest first."""
    found = [
        _speed(measured, problem, timing.variant)
        for timing in measured.timings
        if timing.variant in WAYS or timing.variant == OWN
    ]
    return sorted(found, key=lambda speed: -speed.gflops)


def at_equal_work(compared: Comparison, factor: float, floor: float) -> Comparison:
    """Make of a ratio of examples per second one of arithmetic per second.

    Args:
        compared: The ratio of examples per second.
        factor: Work of the variant's example over that of the baseline's.
        floor: The noise floor, a ratio of at least 1.
    """
    low, ratio, high = (
        factor * end for end in (compared.low, compared.ratio, compared.high)
    )
    return dataclasses.replace(
        compared,
        ratio=ratio,
        low=low,
        high=high,
        verdict=_judged(low, ratio, high, floor),
    )


def widened(compared: Comparison, among: int) -> Comparison:
    """Widen an interval so that ``among`` of them hold at once, at 95 %."""
    # Not with the module: listing experiments would take most of a second longer.
    from scipy import stats

    freedom = max(1, compared.rounds - 1)
    one, all_of_them = (
        float(stats.t.ppf(1 - tail, freedom)) for tail in (_TAIL, _TAIL / among)
    )
    reach = all_of_them / one
    return dataclasses.replace(
        compared,
        low=compared.ratio * (compared.low / compared.ratio) ** reach,
        high=compared.ratio * (compared.high / compared.ratio) ** reach,
    )


def _judged(low: float, ratio: float, high: float, floor: float) -> Comparing:
    if low > 1 and ratio > floor:
        return "faster"
    if high < 1 and ratio < 1 / floor:
        return "slower"
    open_to = max(1 / low, high)
    return "no difference shown" if open_to <= WORTH_KNOWING else "too noisy to say"


def _speed(measured: Measurement, problem: Problem, name: str) -> Speed:
    timing = measured.timing(name)
    rate = timing.rate if timing else 0.0
    way, whole = WAYS.get(name, WAYS[BASELINE]), WAYS[BASELINE]
    flops = way.flops(problem) / whole.flops(problem)
    traffic = way.traffic(problem) / whole.traffic(problem)
    compute = _share(measured, name, _arithmetic_of(way), flops)
    memory = _share(measured, name, MEMORY, traffic)
    shares: dict[Bound, _Share | None] = {"compute": compute, "memory": memory}
    return Speed(
        variant=name,
        gflops=rate * way.flops(problem) / 1e9,
        compute=compute and compute[0],
        memory=memory and memory[0],
        overhead=measured.notes.get("overhead", {}).get(name),
        within={of: share[1:] for of, share in shares.items() if share},
    )


def _arithmetic_of(way: Way) -> str:
    return BFLOAT16 if way.precision == "bfloat16" else ARITHMETIC


def _share(
    measured: Measurement, name: str, limit: str, factor: float
) -> _Share | None:
    """A share of a limit and its interval; None where it is not known."""
    compared = measured.compare(name, limit)
    if compared is None or not compared.is_judged:
        return None
    return compared.ratio * factor, compared.low * factor, compared.high * factor
