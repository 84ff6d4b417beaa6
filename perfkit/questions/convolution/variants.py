"""The ways to compute a convolution in NumPy and TensorFlow, wrong ones too.

What a way does before it gives its call is set-up. The lines of the call are what a
reader is shown and advised.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from perfkit.engine.measurement import OWN
from perfkit.questions.convolution.work import (
    FLOAT,
    Array,
    Problem,
    convolved,
    convolved_by_channel,
    placed,
)
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.later import keras, tf

Nested = list[Any]
Call = Callable[[], Any]
Operation = Callable[[Any, Any], Any]
# From images, a kernel and their sizes to the call that is timed.
Build = Callable[[Any, Any, Problem], Call]

BASELINE = "conv2d"
# What pixels and weights are multiplied by to fill the range of short numbers.
_PIXEL, _WEIGHT = 64, 1024


@dataclass(frozen=True)
class Method:
    """How a variant computes a convolution.

    Attributes:
        name: Its name.
        build: Makes the call that is timed; what it does before is set-up.
        do: What choosing it means, as a sentence.
        excluded: Why it is never advised, however fast it is; "" where it may be.
        sources: The functions whose lines a reader is shown; none for ``build`` itself.
        against: The variant it is compared with.
        precision: Of the numbers that it multiplies.
        interpreted: Whether Python handles single numbers, which may take minutes.
        solves: The problem that it solves, from the one that is asked.
        answer: The right answer in float64.
        read: Puts its answer into the order (batch, row, column, filter).
        scratch: Bytes that it needs besides images, kernel and answer.
    """

    name: str
    build: Build
    do: str
    excluded: str = ""
    sources: tuple[Callable[..., Any], ...] = ()
    against: str = BASELINE
    precision: str = "float32"
    interpreted: bool = False
    solves: Callable[[Problem], Problem] = lambda problem: problem
    answer: Callable[[Any, Any, Problem], Any] = convolved
    read: Callable[[Any], Any] = np.asarray
    scratch: Callable[[Problem], int] = lambda problem: 0

    @functools.cached_property
    def code(self) -> str:
        """Its lines, as a reader types them; "" of a function of one's own."""
        return "" if self.name == OWN else code_of(*self.sources or (self.build,))

    def arrays(self, problem: Problem, seed: int) -> tuple[Any, Any]:
        """Draw the images, the same for all variants, and a kernel of its own shape."""
        return problem.images(seed), self.solves(problem).weights(seed)

    def call(self, problem: Problem, seed: int = 0) -> Call:
        """Make the call that convolves once."""
        return self.build(*self.arrays(problem, seed), self.solves(problem))

    def flops(self, problem: Problem) -> int:
        """Multiplications and additions for one image."""
        return self.solves(problem).flops

    def traffic(self, problem: Problem) -> float:
        """Bytes that must be read or written for one image, each of them once."""
        part = self.solves(problem)
        images = problem.side**2 * problem.channels + part.out**2 * part.filters
        width = FLOAT if self.precision == "float32" else FLOAT // 2
        return width * (images + part.taps * part.filters / problem.batch)


VARIANTS = dict[str, Method]()


def _method(name: str, do: str, **options: Any) -> Callable[[Build], Build]:
    """Make a variant of what builds its call; see ``Method`` for the rest."""

    def add(build: Build) -> Build:
        VARIANTS[name] = Method(name, build, do, **options)
        return build

    return add


def calling(
    operation: Callable[[Problem], Operation],
    precision: str = "float32",
    graph: Callable[[Operation], Operation] | None = None,
) -> Build:
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


_method(BASELINE, "Call `tf.nn.conv2d` from Python.", sources=(conv2d,))(
    calling(conv2d)
)


def one_pixel(image: Nested, weights: Nested, top: int, left: int) -> list[float]:
    """Sum what lies under the kernel, for each filter."""
    sums = [0.0] * len(weights[0][0][0])
    for row, taps in enumerate(weights, top):
        for column, tap in enumerate(taps, left):
            for value, to_filters in zip(image[row][column], tap, strict=True):
                for number, weight in enumerate(to_filters):
                    sums[number] += value * weight
    return sums


@_method(
    "python loops",
    "Convolve in Python loops, one number at a time.",
    sources=(one_pixel,),
    interpreted=True,
)
def _python_loops(images: Array, kernel: Array, problem: Problem) -> Call:
    padded, weights = problem.pad(images).tolist(), kernel.tolist()
    places = range(0, problem.out * problem.stride, problem.stride)
    return lambda: [
        [[one_pixel(image, weights, top, left) for left in places] for top in places]
        for image in padded
    ]


@_method("numpy taps", "Loop over the kernel in NumPy, a matrix product for each tap.")
def taps(images: Array, kernel: Array, problem: Problem) -> Call:
    """Make what multiplies all pixels under a tap by its matrix, tap after tap."""
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


@_method(
    "numpy im2col",
    "Copy all windows into a matrix in NumPy, and multiply once.",
    against="numpy taps",
    scratch=lambda p: FLOAT * p.batch * p.out**2 * p.taps,
)
def _im2col(images: Array, kernel: Array, problem: Problem) -> Call:
    pad, taps, shape = problem.pad, problem.taps, problem.answer_shape
    sides, stride = (problem.kernel, problem.kernel), problem.stride

    def convolve() -> Array:
        windows = sliding_window_view(pad(images), sides, (1, 2))[:, ::stride, ::stride]
        rows = windows.transpose(0, 1, 2, 4, 5, 3)
        matrix = np.ascontiguousarray(rows).reshape(-1, taps)
        product = matrix @ kernel.reshape(taps, -1)
        return product.reshape(shape)

    return convolve


def _fft_bytes(problem: Problem) -> int:
    """Bytes that the frequencies of images, kernel and answer take."""
    side = problem.side + sum(problem.edge)
    frequencies = side * (side // 2 + 1)
    batch, channels, filters = problem.batch, problem.channels, problem.filters
    pairs = batch * channels + channels * filters + batch * filters
    return 2 * FLOAT * frequencies * pairs


@_method(
    "numpy fft",
    "Multiply frequencies in NumPy.",
    against="numpy taps",
    scratch=_fft_bytes,
)
def _fft(images: Array, kernel: Array, problem: Problem) -> Call:
    # At the size with its zeros what wraps around falls outside the answer.
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


_method(
    "conv2d in a graph",
    "Call `tf.nn.conv2d` in a `tf.function`.",
    sources=(conv2d, compiled),
)(calling(conv2d, graph=compiled))

_XLA = functools.partial(compiled, jit_compile=True)
_method(
    "conv2d under XLA",
    "Compile `tf.nn.conv2d` with XLA.",
    sources=(conv2d, _XLA),
    against="conv2d in a graph",
)(calling(conv2d, graph=_XLA))

_NCHW = functools.partial(conv2d, data_format="NCHW")


@_method(
    "conv2d NCHW",
    "Put the channels first.",
    sources=(_NCHW,),
    read=lambda planes: np.asarray(planes).transpose(0, 2, 3, 1),
)
def _channels_first(images: Array, kernel: Array, problem: Problem) -> Call:
    return calling(_NCHW)(images.transpose(0, 3, 1, 2), kernel, problem)


def call_layer(
    images: Any, kernel: Any, filters: int, side: int, stride: int, padding: str
) -> Call:
    """Make a layer with these weights, and call it as a function."""
    layer = keras.layers.Conv2D(filters, side, stride, padding, use_bias=False)
    layer.build(images.shape)
    layer.kernel.assign(kernel)
    return lambda: layer(images)


@_method("keras layer", "Call a `keras.layers.Conv2D`.", sources=(call_layer,))
def _keras_layer(images: Array, kernel: Array, problem: Problem) -> Call:
    sizes = (problem.filters, problem.kernel, problem.stride, problem.padding)
    return call_layer(placed(images), kernel, *sizes)


_SHORT_NUMBERS = ("bfloat16", "float16")
SHORT = tuple(f"conv2d {precision}" for precision in _SHORT_NUMBERS)
for _name, _precision in zip(SHORT, _SHORT_NUMBERS, strict=True):
    _method(
        _name,
        f"Call `tf.nn.conv2d` on {_precision} numbers.",
        excluded="right to 2 or 3 digits only",
        sources=(functools.partial(rounded, precision=_precision), conv2d),
        precision=_precision,
    )(calling(conv2d, _precision))


def by_channel(images: Any, kernel: Any, strides: Any, padding: str) -> Call:
    """Convolve each channel with a filter of its own."""
    import tensorflow as tf

    return lambda: tf.nn.depthwise_conv2d(images, kernel, strides, padding)


@_method(
    "depthwise",
    "Give each channel one filter of its own.",
    excluded="another layer, with less arithmetic",
    sources=(by_channel,),
    solves=lambda p: replace(p, channels=1, filters=p.channels),
    answer=convolved_by_channel,
)
def _depthwise(images: Array, kernel: Array, problem: Problem) -> Call:
    strides, padding = (1, problem.stride, problem.stride, 1), problem.padding.upper()
    numbers, weights = placed(images), placed(kernel.transpose(0, 1, 3, 2))
    return by_channel(numbers, weights, strides, padding)


_mistake = functools.partial(_method, excluded="a mistake")


@_mistake("as circulated", "Run the custom convolution of a tutorial in circulation.")
def _zeros(images: Array, kernel: Array, problem: Problem) -> Call:
    return lambda: np.zeros(problem.answer_shape, np.float32)


@_mistake("swapped axes", "Take the kernel's columns for its rows.")
def _swapped_axes(images: Array, kernel: Array, problem: Problem) -> Call:
    return taps(images, kernel.transpose(1, 0, 2, 3), problem)


@_mistake("wrong padding", "Put one row and column of zeros too many before the image.")
def _wrong_padding(images: Array, kernel: Array, problem: Problem) -> Call:
    moved = np.pad(images, ((0, 0), (1, 0), (1, 0), (0, 0)))[:, :-1, :-1]
    return taps(moved, kernel, problem)


@_mistake("float16 overflow", "Sum scaled products in float16.", precision="float16")
def _float16_overflow(images: Array, kernel: Array, problem: Problem) -> Call:
    # It ends at 65,504.
    half = np.float16
    pixels: Any = (images * _PIXEL).astype(half)
    sums = taps(pixels, (kernel * _WEIGHT).astype(half), problem)

    def convolve() -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            return (sums() / half(_PIXEL)) / half(_WEIGHT)

    return convolve


@_mistake("off-by-one stride", "Move the window by one pixel too many.")
def _off_by_one_stride(images: Array, kernel: Array, problem: Problem) -> Call:
    wider = replace(problem, stride=problem.stride + 1)
    convolve = taps(images, kernel, wider)
    # The last pixels are repeated to fill the answer.
    edge = (0, problem.out - wider.out)
    return lambda: np.pad(convolve(), ((0, 0), edge, edge, (0, 0)), mode="edge")


def own_method(function: Callable[[Any, Any, int, str], Any]) -> Method:
    """Make a variant of a function of images, kernel, stride and padding."""

    def build(images: Any, kernel: Any, problem: Problem) -> Call:
        return lambda: function(images, kernel, problem.stride, problem.padding)

    return Method(OWN, build, "Use your own function.", interpreted=True)


GROUPS = {
    "essential": (
        *(BASELINE, "python loops", "numpy taps", "numpy im2col", "numpy fft"),
        *("conv2d in a graph", "conv2d under XLA", "keras layer"),
        *("conv2d bfloat16", "as circulated"),
    ),
    "numpy": ("numpy taps", "numpy im2col", "numpy fft"),
    "library": ("conv2d in a graph", "conv2d under XLA", "conv2d NCHW", "keras layer"),
    "precision": SHORT,
    "lighter": ("depthwise",),
    "mistakes": (
        *("as circulated", "swapped axes", "wrong padding"),
        *("float16 overflow", "off-by-one stride"),
    ),
    "all": tuple(VARIANTS),
}
