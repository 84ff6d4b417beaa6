"""A convolution in TensorFlow: its own operation, and a loop over the kernel's taps."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from perfkit.experiments.convolution.problem import FLOAT, Problem, convolved, counted
from perfkit.measure.tick import READY, Yielded

if TYPE_CHECKING:
    import tensorflow as tf

Array = NDArray[np.float32]
Call = Callable[[], "tf.Tensor"]
Operation = Callable[[Any, Any], "tf.Tensor"]
Build = Callable[[Array, Array, Problem], Call]

GROUPS = 4
# Matrices that keep all cores busy for some milliseconds, and a GPU as well.
_SIDE, _SIDE_ON_GPU = 1024, 8192
# Larger than what the caches of a processor hold.
_NUMBERS = 2**25
# Two are read and one is written.
_MOVED = 3 * FLOAT * _NUMBERS


def placed(array: Array) -> "tf.Tensor":
    """Put numbers where TensorFlow computes: on the GPU where there is one."""
    import tensorflow as tf

    # What a constant is made of stays in the machine's memory; a result does not.
    return tf.identity(tf.constant(array))


def calling(
    operation: Callable[[Problem], Operation],
    precision: str = "float32",
    graph: Callable[[Operation], Operation] | None = None,
) -> Build:
    """Give what makes the call of an operation on images and a kernel.

    Args:
        operation: Makes it, for a problem.
        precision: Of the numbers that it is given.
        graph: Makes a graph of it; None to have it called from Python.
    """

    def build(images: Array, kernel: Array, problem: Problem) -> Call:
        numbers, weights = rounded(placed(images), placed(kernel), precision)
        convolve = operation(problem)
        if graph:
            convolve = graph(convolve)
        return lambda: convolve(numbers, weights)

    return build


def rounded(images: Any, kernel: Any, precision: str) -> tuple[Any, Any]:
    """Give the same numbers in a precision."""
    import tensorflow as tf

    images, kernel = tf.cast(images, precision), tf.cast(kernel, precision)
    return images, kernel


def compiled(convolve: Any, **options: Any) -> Any:
    """Make a graph of an operation; ``options`` are as of ``tf.function``."""
    import tensorflow as tf

    convolve = tf.function(convolve, **options)
    return convolve


def conv2d(problem: Problem, **more: Any) -> Operation:
    """What TensorFlow brings along."""
    import tensorflow as tf

    stride, padding = problem.stride, problem.padding.upper()

    def convolve(images: Any, kernel: Any) -> Any:
        return tf.nn.conv2d(images, kernel, stride, padding, **more)

    return convolve


def taps(problem: Problem) -> Operation:
    """The loop over the kernel in TensorFlow's operations."""
    import tensorflow as tf

    edge, stride = problem.edge, problem.stride
    reach = (problem.out - 1) * stride + 1
    taps = [(r, c) for r in range(problem.kernel) for c in range(problem.kernel)]

    def convolve(images: Any, kernel: Any) -> Any:
        products, padded = [], tf.pad(images, ((0, 0), edge, edge, (0, 0)))
        for row, column in taps:
            rows = slice(row, row + reach, stride)
            columns = slice(column, column + reach, stride)
            seen = padded[:, rows, columns]
            products.append(tf.tensordot(seen, kernel[row, column], 1))
        return tf.add_n(products)

    return convolve


def channels_first(images: Array, kernel: Array, problem: Problem) -> Call:
    """Keep all numbers of a channel together, images and answer alike."""
    planes = images.transpose(0, 3, 1, 2)
    operation = functools.partial(conv2d, data_format="NCHW")
    return calling(operation)(planes, kernel, problem)


def in_the_usual_order(answer: "tf.Tensor") -> Array:
    """Put the channels of an answer last again, to compare it with others."""
    return np.asarray(answer).transpose(0, 2, 3, 1)


def keras_layer(images: Array, kernel: Array, problem: Problem) -> Call:
    """Call a ``keras.layers.Conv2D`` as a function."""
    sizes = (problem.filters, problem.kernel, problem.stride, problem.padding)
    return called(layer_of(*sizes), placed(images), kernel)


def layer_of(filters: int, side: int, stride: int, padding: str) -> Any:
    """Make the layer."""
    import keras

    layer = keras.layers.Conv2D(filters, side, stride, padding, use_bias=False)
    return layer


def called(layer: Any, images: Any, kernel: Any) -> Call:
    """Give the layer its weights, and call it."""
    layer.build(images.shape)
    layer.kernel.assign(kernel)
    return lambda: layer(images)


def depthwise(images: Array, kernel: Array, problem: Problem) -> Call:
    """Call ``tf.nn.depthwise_conv2d``: a filter of its own for each channel."""
    strides, padding = (1, problem.stride, problem.stride, 1), problem.padding.upper()
    numbers, weights = placed(images), placed(kernel.transpose(0, 1, 3, 2))
    return by_channel(numbers, weights, strides, padding)


def by_channel(images: Any, kernel: Any, strides: Any, padding: str) -> Call:
    """Convolve each channel with a filter of its own."""
    import tensorflow as tf

    return lambda: tf.nn.depthwise_conv2d(images, kernel, strides, padding)


def in_groups(problem: Problem) -> Problem:
    """The same with the channels of one group only; the filters are those of all."""
    return dataclasses.replace(problem, channels=problem.channels // GROUPS)


def per_channel(problem: Problem) -> Problem:
    """The same with one channel only; there is a filter for each channel."""
    return dataclasses.replace(problem, channels=1, filters=problem.channels)


def why_not_in_groups(problem: Problem) -> str:
    """Say why the channels cannot be split; "" where they can."""
    if problem.channels % GROUPS or problem.filters % GROUPS:
        return f"needs channels and filters that are multiples of {GROUPS}"
    return ""


def convolved_in_groups(
    images: Array, kernel: Array, problem: Problem
) -> NDArray[np.float64]:
    """The right answer, one group of channels after another.

    Args:
        images: With all channels.
        kernel: With the channels of one group, and the filters of all.
        problem: Sizes of one group's convolution.
    """
    groups = images.shape[-1] // kernel.shape[-2]
    split = (np.split(array, groups, axis=-1) for array in (images, kernel))
    parts = zip(*split, strict=True)
    answers = [convolved(image, weights, problem) for image, weights in parts]
    return np.concatenate(answers, axis=-1)


def multiplying(flops: float, precision: str = "float32") -> Iterator[Yielded]:
    """Multiply large matrices, over and over; so many FLOP count as one example."""
    import tensorflow as tf

    side = _SIDE_ON_GPU if tf.config.list_logical_devices("GPU") else _SIDE
    matrix = tf.cast(placed(tf.random.normal([side, side])), precision)
    yield READY
    yield from counted(lambda: tf.matmul(matrix, matrix), 2 * side**3 / flops)


def moving(traffic: float) -> Iterator[Yielded]:
    """Add one large row of numbers to another; so many bytes count as one example."""
    import tensorflow as tf

    sums, ones = tf.Variable(tf.zeros([_NUMBERS])), tf.ones([_NUMBERS])
    yield READY
    yield from counted(lambda: sums.assign_add(ones), _MOVED / traffic)
