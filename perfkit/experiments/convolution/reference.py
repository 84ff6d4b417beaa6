"""What a convolution has to give, in float64, and how far rounding may lead away.

The answer is computed window by window, straight from the definition: no way that is
timed does it like this.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perfkit.experiments.convolution.problem import Problem

    Array = NDArray[np.float64]

# Half the distance from 1 to the next number that each kind of number can hold; TF32
# is what a GPU may make of the float32 that goes into its tensor cores.
_ROUNDING = {
    "float32": 2.0**-24,
    "tf32": 2.0**-11,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}
# Rounding errors fall to both sides, so they add up like a random walk. With numbers
# drawn at random a sum is usually off by about one rounding of the sum of its terms'
# sizes, the worst of millions by six, and Winograd's products by ten times that. What
# is rounded before it is multiplied shows less, the more terms a sum has.
_SUMMED = 64.0
_ROUNDED_BEFORE = 16.0


def convolved(
    images: NDArray[np.float32], kernel: NDArray[np.float32], problem: Problem
) -> Array:
    """The answer in float64, one window after another."""
    import numpy as np

    edge = (problem.before, problem.after)
    padded = np.pad(np.asarray(images, np.float64), ((0, 0), edge, edge, (0, 0)))
    weights = np.asarray(kernel, np.float64).reshape(-1, kernel.shape[-1])
    answer = np.empty((len(images), problem.out, problem.out, weights.shape[1]))
    for row in range(problem.out):
        top = row * problem.stride
        for column in range(problem.out):
            left = column * problem.stride
            window = padded[:, top : top + len(kernel), left : left + len(kernel)]
            answer[:, row, column] = window.reshape(len(images), -1) @ weights
    return answer


def allowed(size: float, terms: int, precision: str) -> float:
    """The largest difference from the answer that rounding explains.

    Sums are taken to be made in float32, as they are wherever shorter numbers are
    multiplied well.

    Args:
        size: Of the largest answer there would be without any minus sign.
        terms: Products that make up one number of the answer.
        precision: Of the numbers that are multiplied: ``"float32"``, ``"tf32"``,
            ``"float16"`` or ``"bfloat16"``.
    """
    summed = _SUMMED * _ROUNDING["float32"] * size
    return summed + _ROUNDED_BEFORE * _ROUNDING[precision] * size / math.sqrt(terms)
