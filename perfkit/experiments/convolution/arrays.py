"""A convolution in NumPy: by taps, by windows, as a matrix product, by frequencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.experiments.convolution.problem import FLOAT, pad

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from perfkit.experiments.convolution.problem import Problem

    Array = NDArray[np.float32]


def taps(images: Array, kernel: Array, problem: Problem) -> Callable[[], Array]:
    """Loop over the taps of the kernel; each is a matrix product over all pixels."""
    import numpy as np

    reach = (problem.out - 1) * problem.stride + 1

    def call() -> Array:
        padded = pad(images, problem)
        answer = np.zeros(problem.answer_shape, images.dtype)
        for row in range(problem.kernel):
            rows = slice(row, row + reach, problem.stride)
            for column in range(problem.kernel):
                columns = slice(column, column + reach, problem.stride)
                answer += padded[:, rows, columns] @ kernel[row, column]
        return answer

    return call


def windows(images: Array, kernel: Array, problem: Problem) -> Callable[[], Array]:
    """View every window where it lies, and let ``einsum`` sum over three indices."""
    import numpy as np

    def call() -> Array:
        views = _windows(images, problem)
        answer: Array = np.einsum("bhwcij,ijcf->bhwf", views, kernel, optimize=True)
        return answer

    return call


def im2col(images: Array, kernel: Array, problem: Problem) -> Callable[[], Array]:
    """Copy every window into a row of a matrix, then make one matrix product."""
    import numpy as np

    def call() -> Array:
        views = _windows(images, problem).transpose(0, 1, 2, 4, 5, 3)
        matrix = np.ascontiguousarray(views).reshape(-1, problem.taps)
        product = matrix @ kernel.reshape(problem.taps, -1)
        return product.reshape(problem.answer_shape)

    return call


def fft(images: Array, kernel: Array, problem: Problem) -> Callable[[], Array]:
    """Multiply frequencies: a convolution at every pixel, of which a stride keeps some.

    The images are transformed at the size that they have with their zeros, where what
    wraps around falls outside the answer.
    """
    import numpy as np

    size, full = (problem.padded,) * 2, problem.padded - problem.kernel + 1
    kept = slice(0, full, problem.stride)

    def call() -> Array:
        of_images = np.fft.rfft2(pad(images, problem), size, axes=(1, 2))
        of_kernel = np.fft.rfft2(kernel, size, axes=(0, 1)).conj()
        # A matrix product over the channels for each frequency.
        product = of_images.transpose(1, 2, 0, 3) @ of_kernel
        answer = np.fft.irfft2(product, size, axes=(0, 1))[kept, kept]
        return np.ascontiguousarray(answer.transpose(2, 0, 1, 3))

    return call


def windows_bytes(problem: Problem) -> int:
    """Bytes that a copy of all windows takes."""
    return FLOAT * problem.windows


def fft_bytes(problem: Problem) -> int:
    """Bytes that the frequencies of images, kernel and answer take."""
    frequencies = problem.padded * (problem.padded // 2 + 1)
    pairs = (
        problem.batch * problem.channels
        + problem.channels * problem.filters
        + problem.batch * problem.filters
    )
    return 2 * FLOAT * frequencies * pairs


def _windows(images: Array, problem: Problem) -> Array:
    import numpy as np

    sides = (problem.kernel, problem.kernel)
    views = np.lib.stride_tricks.sliding_window_view(
        pad(images, problem), sides, (1, 2)
    )
    return views[:, :: problem.stride, :: problem.stride]
