"""Which variants give the right answer, and are tried first."""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.experiments.convolution.problem import Problem, allowed, wait_for_device
from perfkit.experiments.convolution.variants import Method
from perfkit.machine.limits import free_bytes

Array = NDArray[np.float64]

# An answer that was kept from an earlier call is right for the first numbers only.
_SEEDS = (0, 1)
# A call that takes longer leaves a run of a minute too few of them.
LONGEST_S = 0.3
# Unless the baseline takes this long itself.
_OF_BASELINE = 2.0
# What a variant may take of the memory that is free.
_MEMORY_SHARE = 0.25
_MESSAGE = 60
# How long a call is timed, and how often at most.
_TIMED_S, _TIMES = 0.02, 20
# A call that takes so many times what the smallest takes is long for its work.
_GROWN = 3.0


def mistake(method: Method, problem: Problem) -> str:
    """Say what is wrong with a variant's answer; "" where it is right.

    Raises:
        Exception: Whatever the variant raises; its author may be the reader.
    """
    seeds = _SEEDS if method.interpreted else _SEEDS[:1]
    return next(filter(None, (_mistake(method, problem, seed) for seed in seeds)), "")


def _mistake(method: Method, problem: Problem, seed: int) -> str:
    given = method.call(problem, seed)()
    if given is None:
        return "gives back nothing: its function is still to be written"
    part = method.solves(problem)
    found = method.read(given).astype(np.float64)
    wanted, size = _right(method.answer, problem, part, seed)
    if found.shape != wanted.shape:
        return f"gives an answer of the shape {found.shape} instead of {wanted.shape}"
    if not np.isfinite(found).all():
        count = np.count_nonzero(~np.isfinite(found))
        return f"gives a wrong answer: {count:,} of its numbers are too large to hold"
    images, kernel = method.arrays(problem, seed)
    limit = allowed(size, part.taps, _precision(method, given))
    difference = _difference(
        found, wanted, limit, lambda other: method.answer(images, other, part), kernel
    )
    return difference and f"gives a wrong answer: {difference}"


def _difference(
    found: Array,
    wanted: Array,
    limit: float,
    with_kernel: Callable[[Any], Array],
    kernel: Any,
) -> str:
    """Say how an answer differs, by name where it is a known mistake."""
    off = abs(found - wanted)
    if off.max() <= limit:
        return ""
    if not found.any():
        return "nothing but zeros"
    others = {
        "it takes the kernel's columns for its rows": kernel.swapaxes(0, 1),
        "it mirrors the kernel": kernel[::-1, ::-1],
    }
    for what, other in others.items():
        if abs(found - with_kernel(other)).max() <= limit:
            return what
    edges = kernel.shape[0]
    inside = off[:, edges:-edges, edges:-edges]
    where = ", at the edges only" if inside.size and inside.max() <= limit else ""
    return f"off by up to {off.max():.2g}{where}; rounding explains {limit:.1g}"


@functools.lru_cache(maxsize=2)
def _right(
    answer: Callable[..., Array], problem: Problem, part: Problem, seed: int
) -> tuple[Array, float]:
    """The right answer and its size, computed once for all variants that share it."""
    images, kernel = problem.images(seed), part.weights(seed)
    sizes = answer(abs(images), abs(kernel), part)
    return answer(images, kernel, part), float(sizes.max())


def _precision(method: Method, given: Any) -> str:
    """How the numbers were multiplied that gave an answer."""
    if method.precision != "float32" or isinstance(given, np.ndarray | list):
        return method.precision
    import tensorflow as tf

    short = tf.config.experimental.tensor_float_32_execution_enabled()
    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    return "tf32" if short and on_gpu else "float32"


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What came of trying a variant.

    Attributes:
        why_not: Why it is not to be timed; "" where it is.
        call_s: Seconds of a call.
        overhead: The share of a call that one with next to no arithmetic takes; None
            where it cannot be told.
    """

    why_not: str = ""
    call_s: float = 0.0
    overhead: float | None = None


def try_method(method: Method, problem: Problem, longest_s: float = LONGEST_S) -> Tried:
    """Hold a variant's answer against the right one, and time a call of it."""
    try:
        why_not = (
            method.why_not(problem)
            or _too_large(method, problem)
            or _too_slow_to_try(method, problem, longest_s)
            or mistake(method, problem)
        )
        seconds = 0.0 if why_not else call_s(method, problem)
    # Whatever the author of a function did wrong is theirs to read, not the run's end.
    except Exception as error:
        if type(error).__name__ == "UnimplementedError":
            return Tried(why_not="TensorFlow cannot compute that on this device")
        first = (str(error).strip().splitlines() or [""])[0][:_MESSAGE]
        return Tried(why_not=f"raised {type(error).__name__}: {first}")
    if why_not := why_not or _too_slow(seconds, longest_s):
        return Tried(why_not=why_not)
    return Tried(call_s=seconds, overhead=_overhead(method, problem, seconds))


def longest_s(baseline_s: float) -> float:
    """How long a call may take where the baseline's takes ``baseline_s``."""
    return max(LONGEST_S, _OF_BASELINE * baseline_s)


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
    same = (replace(problem, channels=n, filters=n) for n in range(1, 17))
    fewest = next(one for one in same if not method.why_not(one))
    small = replace(fewest, batch=1, side=problem.kernel, padding="valid")
    try:
        return min(1.0, call_s(method, small) / seconds)
    # Functions that take no such image exist, and are no less worth timing.
    except Exception:
        return None


def _too_large(method: Method, problem: Problem) -> str:
    needed = method.scratch(problem)
    if needed <= _MEMORY_SHARE * free_bytes():
        return ""
    return f"would take {units.size(needed)} of memory besides its numbers"


def _too_slow_to_try(method: Method, problem: Problem, longest_s: float) -> str:
    """Follow how a call grows with its image, where a whole one may take minutes."""
    if not method.interpreted:
        return ""
    least, least_work, side = 0.0, 0, problem.kernel
    # The same convolution of one image, from a few pixels on.
    while side < problem.side:
        small = replace(problem, batch=1, side=side)
        seconds, work = call_s(method, small), small.flops
        if least and seconds > _GROWN * least:
            each = (seconds - least) / (work - least_work)
            slow = _too_slow(each * problem.batch * problem.flops, longest_s)
            if slow:
                return slow
        least, least_work = least or seconds, least_work or work
        side *= 2
    return ""


def _too_slow(seconds: float, longest_s: float) -> str:
    if seconds <= longest_s:
        return ""
    return f"takes about {units.seconds(seconds)} a call, too long to be timed here"
