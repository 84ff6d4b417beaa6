"""Try a variant before it is timed, then time it.

It is timed if its answer is right, and if it comes soon enough to be measured often.
"""

import functools
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.engine.tick import READY, Yielded, every
from perfkit.machine.limits import free_bytes
from perfkit.questions.base import UNWRITTEN, raised
from perfkit.questions.convolution.variants import (
    FLOAT,
    Method,
    Problem,
    convolved,
    placed,
)
from perfkit.questions.shared.later import tf

Array = NDArray[np.float64]

# Half the distance from 1 to the next number that each kind of number can hold; TF32
# is what a GPU may make of the float32 that goes into its tensor cores.
_ROUNDING = {
    "float32": 2.0**-24,
    "tf32": 2.0**-11,
    "bfloat16": 2.0**-8,
}
# Rounding errors fall to both sides, so they add up like a random walk. With numbers
# drawn at random a sum is usually off by about one rounding of the sum of its terms'
# sizes, the worst of millions by six, and Winograd's products by ten times that. What
# is rounded before it is multiplied shows less, the more terms a sum has.
_SUMMED = 64.0
_ROUNDED_BEFORE = 16.0
# An answer that was kept from an earlier call is right for the first numbers only.
_SEEDS = (0, 1)
# A call that takes longer leaves a run of a minute too few of them.
LONGEST_S = 0.3
# What a variant may take of the memory that is free.
_MEMORY_SHARE = 0.25
_MESSAGE = 60
# How long a call is timed, and how often at most.
_TIMED_S, _TIMES = 0.02, 20
# A time is worked out for large images once a call takes this many of the smallest.
_GROWN = 3.0


def mistake(method: Method, problem: Problem) -> str:
    """Say what is wrong with a variant's answer; "" if right. Raise what it raises."""
    seeds = _SEEDS if method.interpreted else _SEEDS[:1]
    return next(filter(None, (_mistake(method, problem, seed) for seed in seeds)), "")


def _mistake(method: Method, problem: Problem, seed: int) -> str:
    answer = method.call(problem, seed)()
    if answer is None:
        return UNWRITTEN
    numbers = np.asarray(answer).astype(np.float64)
    right, size = _right(problem, seed)
    if numbers.shape != right.shape:
        return f"gives the shape {numbers.shape} instead of {right.shape}"
    wrong = "gives a wrong answer:"
    if count := np.count_nonzero(~np.isfinite(numbers)):
        return f"{wrong} {count:,} of its numbers overflow"
    limit = allowed(size, problem.taps, _precision(method, answer))
    off = abs(numbers - right).max()
    if off <= limit:
        return ""
    if not numbers.any():
        return f"{wrong} nothing but zeros"
    return f"{wrong} off by up to {off:.2g}; rounding explains {limit:.1g}"


def allowed(size: float, terms: int, precision: str) -> float:
    """The largest difference from the right answer that rounding explains.

    Sums are taken to be made in float32, as they are wherever shorter numbers are
    multiplied well. Without any minus sign the largest answer would have this size.
    """
    summed = _SUMMED * _ROUNDING["float32"] * size
    return summed + _ROUNDED_BEFORE * _ROUNDING[precision] * size / math.sqrt(terms)


@functools.lru_cache(maxsize=2)
def _right(problem: Problem, seed: int) -> tuple[Array, float]:
    """The right answer and its size, computed once for all variants."""
    images, kernel = problem.images(seed), problem.weights(seed)
    sizes = convolved(abs(images), abs(kernel), problem)
    return convolved(images, kernel, problem), float(sizes.max())


def _precision(method: Method, answer: Any) -> str:
    """How the numbers were multiplied that gave an answer."""
    if method.precision != "float32" or isinstance(answer, np.ndarray | list):
        return method.precision
    short = tf.config.experimental.tensor_float_32_execution_enabled()
    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    return "tf32" if short and on_gpu else "float32"


@dataclass(frozen=True, kw_only=True)
class Check:
    """Why a variant is not timed, or "" and seconds of a call.

    The overhead is the share that a call with next to no arithmetic takes; None where
    it cannot be told.
    """

    why_not: str = ""
    call_s: float = 0.0
    overhead: float | None = None


def try_method(method: Method, problem: Problem, longest_s: float = LONGEST_S) -> Check:
    """Compare a variant's answer with the right one, and time a call of it."""
    if (scratch := method.scratch(problem)) > _MEMORY_SHARE * free_bytes():
        needs = f"would take {units.size(scratch)} of memory besides its numbers"
        return Check(why_not=needs)
    try:
        why_not = _too_slow_to_try(method, problem, longest_s)
        why_not = why_not or mistake(method, problem)
        seconds = 0.0 if why_not else call_s(method, problem)
    # Whatever the author of a function did wrong is theirs to read, not the run's end.
    except Exception as error:
        if type(error).__name__ == "UnimplementedError":
            return Check(why_not="TensorFlow cannot compute that on this device")
        return Check(why_not=raised(error, _MESSAGE))
    if why_not := why_not or _too_slow(seconds, longest_s):
        return Check(why_not=why_not)
    return Check(call_s=seconds, overhead=_overhead(method, problem, seconds))


def call_s(method: Method, problem: Problem) -> float:
    """Seconds of a call, the shortest of some after the first."""
    call = method.call(problem)
    call()
    wait_for_device()
    spent = list[float]()
    while len(spent) < _TIMES and sum(spent) < _TIMED_S:
        began = time.perf_counter()
        call()
        wait_for_device()
        spent.append(time.perf_counter() - began)
    return min(spent)


def _overhead(method: Method, problem: Problem, seconds: float) -> float | None:
    """The share of a call that a single window with few channels takes."""
    fewest = replace(problem, batch=1, channels=1, filters=1)
    small = replace(fewest, side=problem.kernel, padding="valid")
    try:
        return min(1.0, call_s(method, small) / seconds)
    # Functions that take no such image exist, and are no less worth timing.
    except Exception:
        return None


def _too_slow_to_try(method: Method, problem: Problem, longest_s: float) -> str:
    """Follow how a call grows with its image, where a whole one may take minutes."""
    if not method.interpreted:
        return ""
    first_s, first_work, side = 0.0, 0, problem.kernel
    # The same convolution of one image, from a few pixels on.
    while side < problem.side:
        small = replace(problem, batch=1, side=side)
        seconds, work = call_s(method, small), small.flops
        if first_s and seconds > _GROWN * first_s:
            per_flop = (seconds - first_s) / (work - first_work)
            total_s = per_flop * problem.batch * problem.flops
            if slow := _too_slow(total_s, longest_s):
                return slow
        first_s, first_work = first_s or seconds, first_work or work
        side *= 2
    return ""


def _too_slow(seconds: float, longest_s: float) -> str:
    if seconds <= longest_s:
        return ""
    return f"takes about {units.seconds(seconds)} a call, too long to be timed here"


# Matrices that keep all cores busy for some milliseconds, and a GPU as well.
_SIDE, _SIDE_ON_GPU = 1024, 8192
# Larger than what the caches of a processor hold.
_NUMBERS = 2**25
# Two are read and one is written.
_MOVED = 3 * FLOAT * _NUMBERS


def multiplying(flops: float, precision: str = "float32") -> Iterator[Yielded]:
    """Multiply large matrices, over and over; so many FLOP count as one example."""
    side = _SIDE_ON_GPU if tf.config.list_logical_devices("GPU") else _SIDE
    matrix = tf.cast(placed(tf.random.normal([side, side])), precision)
    yield READY
    yield from call_endlessly(lambda: tf.matmul(matrix, matrix), 2 * side**3 / flops)


def moving(traffic: float) -> Iterator[Yielded]:
    """Add one large row of numbers to another; so many bytes count as one example."""
    sums, ones = tf.Variable(tf.zeros([_NUMBERS])), tf.ones([_NUMBERS])
    yield READY
    yield from call_endlessly(lambda: sums.assign_add(ones), _MOVED / traffic)


def wait_for_device() -> None:
    """Return once every device has done what it was asked; free without TensorFlow."""
    # Only who has imported it can have asked for anything.
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and tensorflow.config.list_physical_devices("GPU"):
        tensorflow.test.experimental.sync_devices()


def convolving(call: Callable[[], object], images: int) -> Iterator[Yielded]:
    """Convolve so many images a call; the first call is a tick of its own."""
    wait_for_device()
    yield READY
    call()
    wait_for_device()
    yield images
    yield from call_endlessly(call, images)


def call_endlessly(call: Callable[[], object], per_call: float) -> Iterator[Yielded]:
    """Call without an end, where a call counts as ``per_call`` examples."""

    def examples() -> Iterator[int]:
        due = 0.0
        while True:
            call()
            due += per_call
            # Examples are counted whole; what is left over counts next time.
            yield int(due)
            due -= int(due)

    return every(examples(), sync=wait_for_device)
