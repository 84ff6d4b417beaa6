"""What this machine can do at most: the speed of its arithmetic and of its memory.

Both count examples, so that they stand beside the ways: as many images as the
multiplications of a large matrix product, or the bytes of a large sum, would be enough
for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.experiments.convolution.finishing import wait_for_device
from perfkit.experiments.convolution.problem import FLOAT
from perfkit.measure.tick import READY, Tick, every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.measure.tick import Yielded

ARITHMETIC, BFLOAT16 = "arithmetic limit", "bfloat16 limit"
MEMORY = "memory limit"

# Matrices that keep all cores busy for some milliseconds, and a GPU as well.
_SIDE, _SIDE_ON_GPU = 1024, 8192
# Larger than what the caches of a processor hold.
_NUMBERS = 2**25


def arithmetic(flops: float, precision: str = "float32") -> Iterator[Yielded]:
    """Multiply large matrices, over and over.

    Args:
        flops: Multiplications and additions that count as one example.
        precision: Of the matrices.
    """
    import tensorflow as tf

    from perfkit.experiments.convolution.tensors import placed

    side = _SIDE_ON_GPU if tf.config.list_logical_devices("GPU") else _SIDE
    matrix = placed(tf.random.normal([side, side]), precision)
    yield READY
    yield from _counted(lambda: tf.matmul(matrix, matrix), 2 * side**3 / flops)


def memory(traffic: float) -> Iterator[Yielded]:
    """Add one large row of numbers to another, in place, over and over.

    Args:
        traffic: Bytes that count as one example.
    """
    import tensorflow as tf

    sums, ones = tf.Variable(tf.zeros([_NUMBERS])), tf.ones([_NUMBERS])
    yield READY
    # Two are read and one is written.
    moved = 3 * FLOAT * _NUMBERS
    yield from _counted(lambda: sums.assign_add(ones), moved / traffic)


def _counted(step: Callable[[], object], examples: float) -> Iterator[Yielded]:
    return every(_steps(step, examples), sync=wait_for_device)


def _steps(step: Callable[[], object], examples: float) -> Iterator[Tick]:
    done = counted = 0.0
    while True:
        step()
        done += examples
        # Examples are counted whole; what is left over counts next time.
        yield Tick(int(done - counted))
        counted += int(done - counted)
