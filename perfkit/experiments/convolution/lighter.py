"""Layers that do a part of a convolution's work, because filters see few channels.

They give another answer than the full convolution, each its own.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from perfkit.experiments.convolution.reference import convolved
from perfkit.experiments.convolution.tensors import placed

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import tensorflow as tf
    from numpy.typing import NDArray

    from perfkit.experiments.convolution.problem import Problem

    Array = NDArray[np.float32]
    Call = Callable[[], tf.Tensor]

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
