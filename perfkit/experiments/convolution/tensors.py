"""The loop over the kernel's taps in TensorFlow: eager, as a graph, under XLA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import tensorflow as tf
    from numpy.typing import NDArray

    from perfkit.experiments.convolution.problem import Problem

    Array = NDArray[np.float32]
    Call = Callable[[], tf.Tensor]


def placed(array: Array, precision: str = "float32") -> tf.Tensor:
    """Put numbers where TensorFlow computes: on the GPU where there is one."""
    import tensorflow as tf

    # What a constant is made of stays in the machine's memory; a result does not.
    return tf.identity(tf.cast(tf.constant(array), precision))


def eager(images: Array, kernel: Array, problem: Problem) -> Call:
    """Run one operation after another, as Python names them."""
    return _bound(_taps(problem), images, kernel)


def in_a_graph(images: Array, kernel: Array, problem: Problem) -> Call:
    """Trace the operations once, then run them all with one call."""
    return _bound(graph(_taps(problem)), images, kernel)


def under_xla(images: Array, kernel: Array, problem: Problem) -> Call:
    """Trace the operations once and compile them into one."""
    return _bound(compiled(_taps(problem)), images, kernel)


def graph(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a graph of a function at its first call."""
    import tensorflow as tf

    made: Callable[..., Any] = tf.function(function, autograph=False)
    return made


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function with XLA at its first call."""
    import tensorflow as tf

    made: Callable[..., Any] = tf.function(function, autograph=False, jit_compile=True)
    return made


def _bound(function: Callable[..., Any], images: Array, kernel: Array) -> Call:
    numbers, weights = placed(images), placed(kernel)
    return lambda: function(numbers, weights)


def _taps(problem: Problem) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    import tensorflow as tf

    edge = (problem.before, problem.after)
    reach = (problem.out - 1) * problem.stride + 1
    starts = [(r, c) for r in range(problem.kernel) for c in range(problem.kernel)]

    def convolve(numbers: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        padded = tf.pad(numbers, ((0, 0), edge, edge, (0, 0)))
        products = []
        for row, column in starts:
            rows = slice(row, row + reach, problem.stride)
            columns = slice(column, column + reach, problem.stride)
            products.append(
                tf.tensordot(padded[:, rows, columns], weights[row, column], 1)
            )
        return tf.add_n(products)

    return convolve
