"""Convolutions that look right and are not: each computes something else.

``zeros`` is in circulation, where it is timed and wins.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from perfkit.experiments.convolution import arrays

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from perfkit.experiments.convolution.problem import Problem

    Array = NDArray[np.float32]

# What pixels and weights are multiplied by to fill the range of short numbers.
_PIXEL, _WEIGHT = 64, 1024


def zeros(images: Array, kernel: Array, problem: Problem) -> Callable[[], Array]:
    """Make room for the answer and give it back."""
    import numpy as np

    return lambda: np.zeros(problem.answer_shape, np.float32)


def swapped_axes(images: Array, kernel: Array, problem: Problem) -> Callable[[], Array]:
    """Take the kernel's columns for its rows."""
    return arrays.taps(images, kernel.transpose(1, 0, 2, 3), problem)


def wrong_padding(
    images: Array, kernel: Array, problem: Problem
) -> Callable[[], Array]:
    """Put one row and one column of zeros too many before each image."""
    import numpy as np

    moved = np.pad(images, ((0, 0), (1, 0), (1, 0), (0, 0)))[:, :-1, :-1]
    return arrays.taps(moved, kernel, problem)


def float16_overflow(
    images: Array, kernel: Array, problem: Problem
) -> Callable[[], Array]:
    """Sum scaled products in float16, which ends at 65,504."""
    import numpy as np

    half = np.float16
    sums = arrays.taps(
        (images * _PIXEL).astype(half), (kernel * _WEIGHT).astype(half), problem
    )

    def call() -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return (sums() / half(_PIXEL)) / half(_WEIGHT)

    return call


def off_by_one_stride(
    images: Array, kernel: Array, problem: Problem
) -> Callable[[], Array]:
    """Go on by one pixel too many, and repeat the last pixels to fill the answer."""
    import numpy as np

    wider = dataclasses.replace(problem, stride=problem.stride + 1)
    convolve = arrays.taps(images, kernel, wider)
    edge = (0, problem.out - wider.out)
    return lambda: np.pad(convolve(), ((0, 0), edge, edge, (0, 0)), mode="edge")
