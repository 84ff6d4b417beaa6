"""The convolution that TensorFlow and Keras bring along, called in several ways."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

from perfkit.experiments.convolution.reference import convolved
from perfkit.experiments.convolution.tensors import compiled, graph, placed

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import tensorflow as tf
    from numpy.typing import NDArray

    from perfkit.experiments.convolution.problem import Problem

    Array = NDArray[np.float32]
    Call = Callable[[], tf.Tensor]


def eager(
    images: Array, kernel: Array, problem: Problem, precision: str = "float32"
) -> Call:
    """Call ``tf.nn.conv2d`` from Python."""
    numbers, weights = placed(images, precision), placed(kernel, precision)
    convolve = _conv2d(problem)
    return lambda: convolve(numbers, weights)


def in_a_graph(images: Array, kernel: Array, problem: Problem) -> Call:
    """Call a graph that holds nothing else."""
    numbers, weights = placed(images), placed(kernel)
    convolve = graph(_conv2d(problem))
    return lambda: convolve(numbers, weights)


def under_xla(images: Array, kernel: Array, problem: Problem) -> Call:
    """Call what XLA compiles it into."""
    numbers, weights = placed(images), placed(kernel)
    convolve = compiled(_conv2d(problem))
    return lambda: convolve(numbers, weights)


def channels_first(images: Array, kernel: Array, problem: Problem) -> Call:
    """Keep all numbers of a channel together, images and answer alike."""
    import numpy as np

    planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    numbers, weights = placed(planes), placed(kernel)
    convolve = _conv2d(problem, data_format="NCHW")
    return lambda: convolve(numbers, weights)


def in_the_usual_order(answer: tf.Tensor) -> Array:
    """Put the channels of an answer last again, to compare it with others."""
    import numpy as np

    return np.asarray(answer).transpose(0, 2, 3, 1)


def keras_layer(images: Array, kernel: Array, problem: Problem) -> Call:
    """Call a ``keras.layers.Conv2D`` as a function."""
    import keras

    layer = keras.layers.Conv2D(
        problem.filters,
        problem.kernel,
        strides=problem.stride,
        padding=problem.padding,
        use_bias=False,
    )
    numbers = placed(images)
    layer.build(numbers.shape)
    layer.kernel.assign(kernel)
    return lambda: layer(numbers)


bfloat16 = functools.partial(eager, precision="bfloat16")
float16 = functools.partial(eager, precision="float16")


def _conv2d(problem: Problem, **more: Any) -> Callable[[Any, Any], tf.Tensor]:
    import tensorflow as tf

    return functools.partial(
        tf.nn.conv2d, strides=problem.stride, padding=problem.padding.upper(), **more
    )


GROUPS = 4


def grouped(images: Array, kernel: Array, problem: Problem) -> Call:
    """Give ``tf.nn.conv2d`` a kernel with a part of the channels."""
    import tensorflow as tf

    numbers, weights = placed(images), placed(kernel)
    padding = problem.padding.upper()
    return lambda: tf.nn.conv2d(numbers, weights, problem.stride, padding)


def depthwise(images: Array, kernel: Array, problem: Problem) -> Call:
    """Call ``tf.nn.depthwise_conv2d``: a filter of its own for each channel."""
    import tensorflow as tf

    numbers = placed(images)
    weights = placed(kernel.transpose(0, 1, 3, 2))
    steps = (1, problem.stride, problem.stride, 1)
    padding = problem.padding.upper()
    return lambda: tf.nn.depthwise_conv2d(numbers, weights, steps, padding)


def in_groups(problem: Problem) -> Problem:
    """The same with the channels of one group only; the filters are those of all."""
    return dataclasses.replace(problem, channels=problem.channels // GROUPS)


def per_channel(problem: Problem) -> Problem:
    """The same with one channel only; there is a filter for each channel."""
    return dataclasses.replace(problem, channels=1, filters=problem.channels)


def why_not_in_groups(problem: Problem) -> str:
    """Say why the channels cannot be split; "" where they can."""
    if problem.channels % GROUPS or problem.filters % GROUPS:
        return f"channels and filters must be multiples of {GROUPS} to be grouped"
    return ""


def convolved_in_groups(
    images: Array, kernel: Array, problem: Problem
) -> NDArray[np.float64]:
    """The answer in float64, one group of channels after another.

    Args:
        images: With all channels.
        kernel: With the channels of one group, and the filters of all.
        problem: Sizes of one group's convolution.
    """
    import numpy as np

    groups = images.shape[-1] // kernel.shape[-2]
    split = (np.split(array, groups, axis=-1) for array in (images, kernel))
    parts = zip(*split, strict=True)
    answers = [convolved(image, weights, problem) for image, weights in parts]
    return np.concatenate(answers, axis=-1)
