"""A convolution as a textbook writes it: a Python loop for every index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit.experiments.convolution.problem import pad

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from perfkit.experiments.convolution.problem import Problem

    Nested = list[Any]


def python_loops(
    images: NDArray[np.float32], kernel: NDArray[np.float32], problem: Problem
) -> Callable[[], Nested]:
    """Lists of lists of numbers, multiplied and added one at a time."""
    padded, weights = pad(images, problem).tolist(), kernel.tolist()
    return lambda: [_one_image(image, weights, problem) for image in padded]


def _one_image(image: Nested, weights: Nested, problem: Problem) -> Nested:
    places = range(0, problem.out * problem.stride, problem.stride)
    return [
        [_one_pixel(image, weights, top, left, problem.filters) for left in places]
        for top in places
    ]


def _one_pixel(
    image: Nested, weights: Nested, top: int, left: int, filters: int
) -> list[float]:
    sums = [0.0] * filters
    for row, taps in enumerate(weights, top):
        for column, tap in enumerate(taps, left):
            for value, to_filters in zip(image[row][column], tap, strict=True):
                for number, weight in enumerate(to_filters):
                    sums[number] += value * weight
    return sums
