"""What is to be convolved: its sizes, its numbers, its right answer, its least work.

The right answer is computed in float64, window by window, straight from the definition:
no variant that is timed does it like this.
"""

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfkit.measure.tick import READY, Yielded, every

Array = NDArray[np.float32]
FLOAT = 4
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
    def padded(self) -> int:
        """Pixels of an image's side with its zeros."""
        return self.side + sum(self.edge)

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
        return _drawn((self.batch, self.side, self.side, self.channels), (seed, 0))

    def weights(self, seed: int = 0) -> Array:
        """Draw a kernel in the same manner."""
        shape = (self.kernel, self.kernel, self.channels, self.filters)
        return _drawn(shape, (seed, 1))

    def pad(self, images: Array) -> Array:
        """Put zeros around the images, as many as the padding asks for."""
        return np.pad(images, ((0, 0), self.edge, self.edge, (0, 0)))


def _drawn(shape: tuple[int, ...], seed: tuple[int, int]) -> Array:
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


def allowed(size: float, terms: int, precision: str) -> float:
    """The largest difference from the right answer that rounding explains.

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
    yield from counted(call, images)


def counted(call: Callable[[], object], each: float) -> Iterator[Yielded]:
    """Call without an end, where a call counts as ``each`` examples."""
    return every(_whole(call, each), sync=wait_for_device)


def _whole(call: Callable[[], object], each: float) -> Iterator[int]:
    left = 0.0
    while True:
        call()
        left += each
        # Examples are counted whole; what is left over counts next time.
        yield int(left)
        left -= int(left)
