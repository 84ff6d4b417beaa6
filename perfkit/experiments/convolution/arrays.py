"""A convolution in NumPy: by taps, by windows, as a matrix product, by frequencies."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit.experiments.convolution.problem import FLOAT, Problem

Nested = list[Any]
Array = NDArray[np.float32]
Call = Callable[[], Array]


def python_loops(
    images: Array, kernel: Array, problem: Problem
) -> Callable[[], Nested]:
    """Lists of lists of numbers, multiplied and added one at a time."""
    padded, weights = problem.pad(images).tolist(), kernel.tolist()
    places = range(0, problem.out * problem.stride, problem.stride)
    return lambda: [
        [[one_pixel(image, weights, top, left) for left in places] for top in places]
        for image in padded
    ]


def one_pixel(image: Nested, weights: Nested, top: int, left: int) -> list[float]:
    """Sum what lies under the kernel, for each filter."""
    sums = [0.0] * len(weights[0][0][0])
    for row, taps in enumerate(weights, top):
        for column, tap in enumerate(taps, left):
            for value, to_filters in zip(image[row][column], tap, strict=True):
                for number, weight in enumerate(to_filters):
                    sums[number] += value * weight
    return sums


def taps(images: Array, kernel: Array, problem: Problem) -> Call:
    """Loop over the taps of the kernel; each is a matrix product over all pixels."""
    pad, shape = problem.pad, problem.answer_shape
    side, stride = problem.kernel, problem.stride
    reach = (problem.out - 1) * stride + 1

    def convolve() -> Array:
        padded, answer = pad(images), np.zeros(shape, images.dtype)
        for row in range(side):
            rows = slice(row, row + reach, stride)
            for column in range(side):
                columns = slice(column, column + reach, stride)
                answer += padded[:, rows, columns] @ kernel[row, column]
        return answer

    return convolve


def windows(images: Array, kernel: Array, problem: Problem) -> Call:
    """View every window where it lies, and let ``einsum`` sum over three indices."""
    view = _viewed(problem)

    def convolve() -> Array:
        windows = view(images)
        answer: Array = np.einsum("bhwcij,ijcf->bhwf", windows, kernel, optimize=True)
        return answer

    return convolve


def im2col(images: Array, kernel: Array, problem: Problem) -> Call:
    """Copy every window into a row of a matrix, then make one matrix product."""
    view, taps, shape = _viewed(problem), problem.taps, problem.answer_shape

    def convolve() -> Array:
        windows = view(images).transpose(0, 1, 2, 4, 5, 3)
        matrix = np.ascontiguousarray(windows).reshape(-1, taps)
        product = matrix @ kernel.reshape(taps, -1)
        return product.reshape(shape)

    return convolve


def fft(images: Array, kernel: Array, problem: Problem) -> Call:
    """Multiply frequencies: a convolution at every pixel, of which a stride keeps some.

    The images are transformed at the size that they have with their zeros, where what
    wraps around falls outside the answer.
    """
    size, full = (problem.padded,) * 2, problem.padded - problem.kernel + 1
    kept, pad = slice(0, full, problem.stride), problem.pad

    def convolve() -> Array:
        of_images = np.fft.rfft2(pad(images), size, axes=(1, 2))
        of_kernel = np.fft.rfft2(kernel, size, axes=(0, 1)).conj()
        # A matrix product over the channels for each frequency.
        product = of_images.transpose(1, 2, 0, 3) @ of_kernel
        answer = np.fft.irfft2(product, size, axes=(0, 1))[kept, kept]
        return np.ascontiguousarray(answer.transpose(2, 0, 1, 3))

    return convolve


def windows_bytes(problem: Problem) -> int:
    """Bytes that a copy of all windows takes."""
    return FLOAT * problem.batch * problem.out**2 * problem.taps


def fft_bytes(problem: Problem) -> int:
    """Bytes that the frequencies of images, kernel and answer take."""
    frequencies = problem.padded * (problem.padded // 2 + 1)
    pairs = (
        problem.batch * problem.channels
        + problem.channels * problem.filters
        + problem.batch * problem.filters
    )
    return 2 * FLOAT * frequencies * pairs


def _viewed(problem: Problem) -> Callable[[Array], Array]:
    """Make what views all windows of images where they lie."""
    from numpy.lib.stride_tricks import sliding_window_view

    pad, sides, stride = problem.pad, (problem.kernel, problem.kernel), problem.stride

    def view(images: Array) -> Array:
        windows = sliding_window_view(pad(images), sides, (1, 2))
        return windows[:, ::stride, ::stride]

    return view


# What pixels and weights are multiplied by to fill the range of short numbers.
_PIXEL, _WEIGHT = 64, 1024


def zeros(images: Array, kernel: Array, problem: Problem) -> Call:
    """Make room for the answer and give it back."""
    shape = problem.answer_shape

    def convolve() -> Array:
        return np.zeros(shape, np.float32)

    return convolve


def swapped_axes(images: Array, kernel: Array, problem: Problem) -> Call:
    """Take the kernel's columns for its rows."""
    return taps(images, kernel.transpose(1, 0, 2, 3), problem)


def wrong_padding(images: Array, kernel: Array, problem: Problem) -> Call:
    """Put one row and one column of zeros too many before each image."""
    moved = np.pad(images, ((0, 0), (1, 0), (1, 0), (0, 0)))[:, :-1, :-1]
    return taps(moved, kernel, problem)


def float16_overflow(images: Array, kernel: Array, problem: Problem) -> Call:
    """Sum scaled products in float16, which ends at 65,504."""
    half = np.float16
    pixels: Any = (images * _PIXEL).astype(half)
    sums = taps(pixels, (kernel * _WEIGHT).astype(half), problem)

    def convolve() -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return (sums() / half(_PIXEL)) / half(_WEIGHT)

    return convolve


def off_by_one_stride(images: Array, kernel: Array, problem: Problem) -> Call:
    """Go on by one pixel too many, and repeat the last pixels to fill the answer."""
    wider = dataclasses.replace(problem, stride=problem.stride + 1)
    convolve = taps(images, kernel, wider)
    edge = (0, problem.out - wider.out)
    return lambda: np.pad(convolve(), ((0, 0), edge, edge, (0, 0)), mode="edge")
