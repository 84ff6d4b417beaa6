"""What is convolved, and the ways to do it in NumPy and TensorFlow, wrong ones too.

The right answer is computed in float64, window by window, straight from the definition:
no variant that is timed does it like this.
"""

import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from perfkit.engine.tick import READY, Yielded, every
from perfkit.questions.shared.later import keras, tf

Array = NDArray[np.float32]
Nested = list[Any]
Call = Callable[[], Any]
Operation = Callable[[Any, Any], "tf.Tensor"]

FLOAT = 4
# Matrices that keep all cores busy for some milliseconds, and a GPU as well.
_SIDE, _SIDE_ON_GPU = 1024, 8192
# Larger than what the caches of a processor hold.
_NUMBERS = 2**25
# Two are read and one is written.
_MOVED = 3 * FLOAT * _NUMBERS
# What pixels and weights are multiplied by to fill the range of short numbers.
_PIXEL, _WEIGHT = 64, 1024


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


def im2col(images: Array, kernel: Array, problem: Problem) -> Call:
    """Copy every window into a row of a matrix, then make one matrix product."""
    pad, taps, shape = problem.pad, problem.taps, problem.answer_shape
    sides, stride = (problem.kernel, problem.kernel), problem.stride

    def convolve() -> Array:
        windows = sliding_window_view(pad(images), sides, (1, 2))[:, ::stride, ::stride]
        rows = windows.transpose(0, 1, 2, 4, 5, 3)
        matrix = np.ascontiguousarray(rows).reshape(-1, taps)
        product = matrix @ kernel.reshape(taps, -1)
        return product.reshape(shape)

    return convolve


def fft(images: Array, kernel: Array, problem: Problem) -> Call:
    """Multiply frequencies: a convolution at every pixel, of which a stride keeps some.

    The images are transformed at the size that they have with their zeros, where what
    wraps around falls outside the answer.
    """
    side, pad = problem.side + sum(problem.edge), problem.pad
    size, kept = (side, side), slice(0, side - problem.kernel + 1, problem.stride)

    def convolve() -> Array:
        of_images = np.fft.rfft2(pad(images), size, axes=(1, 2))
        of_kernel = np.fft.rfft2(kernel, size, axes=(0, 1)).conj()
        # A matrix product over the channels for each frequency.
        product = of_images.transpose(1, 2, 0, 3) @ of_kernel
        answer = np.fft.irfft2(product, size, axes=(0, 1))[kept, kept]
        return np.ascontiguousarray(answer.transpose(2, 0, 1, 3))

    return convolve


def fft_bytes(problem: Problem) -> int:
    """Bytes that the frequencies of images, kernel and answer take."""
    side = problem.side + sum(problem.edge)
    frequencies = side * (side // 2 + 1)
    batch, channels, filters = problem.batch, problem.channels, problem.filters
    pairs = batch * channels + channels * filters + batch * filters
    return 2 * FLOAT * frequencies * pairs


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

    def convolve() -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            return (sums() / half(_PIXEL)) / half(_WEIGHT)

    return convolve


def off_by_one_stride(images: Array, kernel: Array, problem: Problem) -> Call:
    """Go on by one pixel too many, and repeat the last pixels to fill the answer."""
    wider = replace(problem, stride=problem.stride + 1)
    convolve = taps(images, kernel, wider)
    edge = (0, problem.out - wider.out)
    return lambda: np.pad(convolve(), ((0, 0), edge, edge, (0, 0)), mode="edge")


def placed(array: Array) -> "tf.Tensor":
    """Put numbers where TensorFlow computes: on the GPU where there is one."""
    # What a constant is made of stays in the machine's memory; a result does not.
    return tf.identity(tf.constant(array))


def calling(
    operation: Callable[[Problem], Operation],
    precision: str = "float32",
    graph: Callable[[Operation], Operation] | None = None,
) -> Callable[[Array, Array, Problem], Call]:
    """Give what makes the call of an operation on numbers in a precision.

    Args:
        operation: Makes it, for a problem.
        precision: Of images and kernel.
        graph: Makes a graph of it; None to have it called from Python.
    """

    def build(images: Array, kernel: Array, problem: Problem) -> Call:
        numbers, weights = rounded(placed(images), placed(kernel), precision)
        convolve = graph(operation(problem)) if graph else operation(problem)
        return lambda: convolve(numbers, weights)

    return build


def rounded(images: Any, kernel: Any, precision: str) -> tuple[Any, Any]:
    """Give the same numbers in a precision."""
    images, kernel = tf.cast(images, precision), tf.cast(kernel, precision)
    return images, kernel


def compiled(convolve: Any, **options: Any) -> Any:
    """Make a graph of an operation; ``options`` are as of ``tf.function``."""
    convolve = tf.function(convolve, **options)
    return convolve


def conv2d(problem: Problem, **options: Any) -> Operation:
    """What TensorFlow brings along."""
    # In a small call even looking up a name of ``later`` would show.
    import tensorflow as tf

    stride, padding = problem.stride, problem.padding.upper()

    def convolve(images: Any, kernel: Any) -> Any:
        return tf.nn.conv2d(images, kernel, stride, padding, **options)

    return convolve


def channels_first(images: Array, kernel: Array, problem: Problem) -> Call:
    """Keep all numbers of a channel together, images and answer alike."""
    planes = images.transpose(0, 3, 1, 2)
    operation = functools.partial(conv2d, data_format="NCHW")
    return calling(operation)(planes, kernel, problem)


def keras_layer(images: Array, kernel: Array, problem: Problem) -> Call:
    """Call a ``keras.layers.Conv2D`` as a function."""
    sizes = (problem.filters, problem.kernel, problem.stride, problem.padding)
    return call_layer(layer_of(*sizes), placed(images), kernel)


def layer_of(filters: int, side: int, stride: int, padding: str) -> Any:
    """Make the layer."""
    layer = keras.layers.Conv2D(filters, side, stride, padding, use_bias=False)
    return layer


def call_layer(layer: Any, images: Any, kernel: Any) -> Call:
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


def convolved_by_channel(
    images: Array, kernel: Array, problem: Problem
) -> NDArray[np.float64]:
    """The right answer, in float64, of a filter of its own for each channel."""
    channels = (slice(at, at + 1) for at in range(images.shape[-1]))
    answers = [convolved(images[..., c], kernel[..., c], problem) for c in channels]
    return np.concatenate(answers, axis=-1)


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
