"""What is convolved, its right answer, and what a trial does with a way to get it.

The right answer is computed in float64, window by window, straight from the definition:
no variant that is timed does it like this.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfkit.engine.tick import READY, Yielded, every
from perfkit.questions.shared.later import tf

Array = NDArray[np.float32]

FLOAT = 4
# Matrices that keep all cores busy for some milliseconds, and a GPU as well.
_SIDE, _SIDE_ON_GPU = 1024, 8192
# Larger than what the caches of a processor hold.
_NUMBERS = 2**25
# Two are read and one is written.
_MOVED = 3 * FLOAT * _NUMBERS


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A square convolution, as TensorFlow and Keras understand it.

    Images have the shape (batch, side, side, channels), the kernel has the shape
    (kernel, kernel, channels, filters), and the kernel is not mirrored.

    Attributes:
        batch: Images in one call.
        side: Pixels of an image's side.
        channels: Numbers of each pixel that goes in.
        filters: Numbers of each pixel that comes out.
        kernel: Pixels of the kernel's side.
        stride: Pixels from one window to the next.
        padding: ``"same"`` or ``"valid"``.
    """

    batch: int = 1
    side: int = 28
    channels: int = 1
    filters: int = 1
    kernel: int = 3
    stride: int = 1
    padding: str = "same"

    @property
    def out(self) -> int:
        """Pixels of the answer's side."""
        if self.padding == "same":
            return -(-self.side // self.stride)
        return (self.side - self.kernel) // self.stride + 1

    @property
    def edge(self) -> tuple[int, int]:
        """Rows of zeros above an image and below it; columns beside it alike."""
        if self.padding == "valid":
            return 0, 0
        missing = max((self.out - 1) * self.stride + self.kernel - self.side, 0)
        return missing // 2, missing - missing // 2

    @property
    def taps(self) -> int:
        """Products that make up one number of the answer."""
        return self.kernel**2 * self.channels

    @property
    def flops(self) -> int:
        """Multiplications and additions for one image, done in the obvious way."""
        return 2 * self.out**2 * self.filters * self.taps

    @property
    def answer_shape(self) -> tuple[int, int, int, int]:
        """Shape of the answer."""
        return (self.batch, self.out, self.out, self.filters)

    def images(self, seed: int = 0) -> Array:
        """Draw images of numbers from -1 to 1; nobody can write into them."""
        return _draw((self.batch, self.side, self.side, self.channels), (seed, 0))

    def weights(self, seed: int = 0) -> Array:
        """Draw a kernel in the same manner."""
        shape = (self.kernel, self.kernel, self.channels, self.filters)
        return _draw(shape, (seed, 1))

    def pad(self, images: Array) -> Array:
        """Put zeros around the images, as many as the padding asks for."""
        return np.pad(images, ((0, 0), self.edge, self.edge, (0, 0)))


def _draw(shape: tuple[int, ...], seed: tuple[int, int]) -> Array:
    numbers = np.random.default_rng(seed).random(shape, np.float32)
    numbers -= 0.5
    numbers *= 2
    numbers.flags.writeable = False
    return numbers


def convolved(images: Array, kernel: Array, problem: Problem) -> NDArray[np.float64]:
    """The right answer, in float64."""
    padded = problem.pad(images).astype(np.float64)
    weights = kernel.astype(np.float64).reshape(-1, kernel.shape[-1])
    answer = np.empty((len(images), problem.out, problem.out, weights.shape[1]))
    for row, column in np.ndindex(problem.out, problem.out):
        top, left = row * problem.stride, column * problem.stride
        window = padded[:, top : top + len(kernel), left : left + len(kernel)]
        answer[:, row, column] = window.reshape(len(images), -1) @ weights
    return answer


def convolved_by_channel(
    images: Array, kernel: Array, problem: Problem
) -> NDArray[np.float64]:
    """The right answer, in float64, of a filter of its own for each channel."""
    channels = (slice(at, at + 1) for at in range(images.shape[-1]))
    answers = [convolved(images[..., c], kernel[..., c], problem) for c in channels]
    return np.concatenate(answers, axis=-1)


def placed(array: Array) -> "tf.Tensor":
    """Put numbers where TensorFlow computes: on the GPU where there is one."""
    # What a constant is made of stays in the machine's memory; a result does not.
    return tf.identity(tf.constant(array))


def multiplying(flops: float, precision: str = "float32") -> Iterator[Yielded]:
    """Multiply large matrices, over and over; so many FLOP count as one example."""
    side = _SIDE_ON_GPU if tf.config.list_logical_devices("GPU") else _SIDE
    matrix = tf.cast(placed(tf.random.normal([side, side])), precision)
    yield READY
    yield from call_endlessly(lambda: tf.matmul(matrix, matrix), 2 * side**3 / flops)


def moving(traffic: float) -> Iterator[Yielded]:
    """Add one large row of numbers to another; so many bytes count as one example."""
    sums, ones = tf.Variable(tf.zeros([_NUMBERS])), tf.ones([_NUMBERS])
    yield READY
    yield from call_endlessly(lambda: sums.assign_add(ones), _MOVED / traffic)


def wait_for_device() -> None:
    """Return once every device has done what it was asked; free without TensorFlow."""
    # Only who has imported it can have asked for anything.
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and tensorflow.config.list_physical_devices("GPU"):
        tensorflow.test.experimental.sync_devices()


def convolving(call: Callable[[], object], images: int) -> Iterator[Yielded]:
    """Convolve so many images a call; the first call is a tick of its own."""
    wait_for_device()
    yield READY
    call()
    wait_for_device()
    yield images
    yield from call_endlessly(call, images)


def call_endlessly(call: Callable[[], object], per_call: float) -> Iterator[Yielded]:
    """Call without an end, where a call counts as ``per_call`` examples."""

    def examples() -> Iterator[int]:
        due = 0.0
        while True:
            call()
            due += per_call
            # Examples are counted whole; what is left over counts next time.
            yield int(due)
            due -= int(due)

    return every(examples(), sync=wait_for_device)
