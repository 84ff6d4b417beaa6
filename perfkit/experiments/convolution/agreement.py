"""Does a way give the right answer? One that does not is shown, and never timed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from perfkit.experiments.convolution.reference import allowed

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from perfkit.experiments.convolution.problem import Problem
    from perfkit.experiments.convolution.ways import Way

    Array = NDArray[np.float64]

# An answer that was kept from an earlier call is right for the first numbers only.
_SEEDS = (0, 1)


def mistake(way: Way, problem: Problem) -> str:
    """Say what is wrong with a way's answer; "" where it is right.

    Raises:
        Exception: Whatever the way raises; its author may be the reader.
    """
    for seed in _SEEDS if way.interpreted else _SEEDS[:1]:
        wrong = _mistake(way, problem, seed)
        if wrong:
            return wrong
    return ""


def _mistake(way: Way, problem: Problem, seed: int) -> str:
    import numpy as np

    given = way.read(way.call(problem, seed)())
    if given is None:
        return "it gives back nothing: its function is still to be written"
    part = way.solves(problem)
    found = np.asarray(given).astype(np.float64)
    wanted, size = _right(way.answer, problem, part, seed)
    if found.shape != wanted.shape:
        return f"its answer has the shape {found.shape} instead of {wanted.shape}"
    if not np.isfinite(found).all():
        count = np.count_nonzero(~np.isfinite(found))
        return f"its answer is wrong: {count:,} of its numbers are too large to hold"
    images, kernel = way.arrays(problem, seed)
    limit = allowed(size, part.taps, _precision(way, given))
    return _difference(
        found, wanted, limit, lambda other: way.answer(images, other, part), kernel
    )


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
        return "its answer is wrong: nothing but zeros"
    others = {
        "it takes the kernel's columns for its rows": kernel.swapaxes(0, 1),
        "it mirrors the kernel": kernel[::-1, ::-1],
    }
    for what, other in others.items():
        if abs(found - with_kernel(other)).max() <= limit:
            return f"its answer is wrong: {what}"
    edges = kernel.shape[0]
    inside = off[:, edges:-edges, edges:-edges]
    where = ", at the edges only" if inside.size and inside.max() <= limit else ""
    return (
        f"its answer is wrong by up to {off.max():.2g}{where}; rounding explains "
        f"{limit:.1g}"
    )


@functools.lru_cache(maxsize=2)
def _right(
    answer: Callable[..., Array], problem: Problem, part: Problem, seed: int
) -> tuple[Array, float]:
    """The right answer and its size, computed once for all ways that share it."""
    images, kernel = problem.images(seed), part.weights(seed)
    sizes = answer(abs(images), abs(kernel), part)
    return answer(images, kernel, part), float(sizes.max())


def _precision(way: Way, given: Any) -> str:
    """How the numbers were multiplied that gave an answer."""
    import numpy as np

    if way.precision != "float32" or isinstance(given, np.ndarray | list):
        return way.precision
    import tensorflow as tf

    short = tf.config.experimental.tensor_float_32_execution_enabled()
    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    return "tf32" if short and on_gpu else "float32"
