"""What is to be convolved: its sizes, its numbers, its least work and traffic."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.measure.tick import READY, every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from perfkit.experiments.convolution.ways import Way
    from perfkit.measure.tick import Yielded


FLOAT = 4


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
    def before(self) -> int:
        """Rows of zeros above an image, and columns to its left."""
        return self._missing // 2

    @property
    def after(self) -> int:
        """Rows of zeros below an image, and columns to its right."""
        return self._missing - self.before

    @property
    def padded(self) -> int:
        """Pixels of an image's side with its zeros."""
        return self.side + self._missing

    @property
    def taps(self) -> int:
        """Products that make up one number of the answer."""
        return self.kernel**2 * self.channels

    @property
    def flops(self) -> int:
        """Multiplications and additions for one image, done in the obvious way."""
        return 2 * self.out**2 * self.filters * self.taps

    @property
    def windows(self) -> int:
        """Numbers in all windows of all images, which overlap."""
        return self.batch * self.out**2 * self.taps

    def images(self, seed: int = 0) -> NDArray[np.float32]:
        """Draw images of numbers from -1 to 1; nobody can write into them."""
        return _drawn(self.image_shape, (seed, 0))

    def weights(self, seed: int = 0) -> NDArray[np.float32]:
        """Draw a kernel in the same manner."""
        return _drawn(self.kernel_shape, (seed, 1))

    @property
    def image_shape(self) -> tuple[int, int, int, int]:
        """Shape of the images."""
        return (self.batch, self.side, self.side, self.channels)

    @property
    def kernel_shape(self) -> tuple[int, int, int, int]:
        """Shape of the kernel."""
        return (self.kernel, self.kernel, self.channels, self.filters)

    @property
    def answer_shape(self) -> tuple[int, int, int, int]:
        """Shape of the answer."""
        return (self.batch, self.out, self.out, self.filters)

    @property
    def _missing(self) -> int:
        if self.padding == "valid":
            return 0
        return max((self.out - 1) * self.stride + self.kernel - self.side, 0)


def pad(images: NDArray[np.float32], problem: Problem) -> NDArray[np.float32]:
    """Put zeros around the images, as many as the padding asks for."""
    import numpy as np

    edge = (problem.before, problem.after)
    return np.pad(images, ((0, 0), edge, edge, (0, 0)))


def _drawn(shape: tuple[int, ...], seed: tuple[int, int]) -> NDArray[np.float32]:
    import numpy as np

    numbers = np.random.default_rng(seed).random(shape, np.float32)
    numbers -= 0.5
    numbers *= 2
    numbers.flags.writeable = False
    return numbers


def wait_for_device() -> None:
    """Return once every device has done what it was asked; free without TensorFlow."""
    # Only who has imported it can have asked for anything.
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and tensorflow.config.list_physical_devices("GPU"):
        tensorflow.test.experimental.sync_devices()


def convolving(way: Way, problem: Problem) -> Iterator[Yielded]:
    """Convolve without an end; the first call is a tick of its own."""
    call = way.call(problem)
    wait_for_device()
    yield READY
    call()
    wait_for_device()
    yield problem.batch
    yield from every(_calls(call, problem.batch), sync=wait_for_device)


def _calls(call: Callable[[], object], batch: int) -> Iterator[int]:
    while True:
        call()
        yield batch
