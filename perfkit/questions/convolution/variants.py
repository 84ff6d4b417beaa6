"""What is convolved, its right answer, and the ways to compute it, a wrong one too.

The right answer is computed in float64, window by window, straight from the definition:
no variant that is timed does it like this. What a way does before it gives its call is
set-up. The lines of the call are what a reader is shown and advised.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from perfkit.engine.measurement import OWN
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.later import tf
from perfkit.questions.shared.race import Choice

Array = NDArray[np.float32]

# Bytes of a number.
FLOAT = 4
BASELINE = "conv2d"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A square convolution, as TensorFlow and Keras understand it.

    Images have the shape (batch, side, side, channels), the kernel has the shape
    (kernel, kernel, channels, filters), and the kernel is not mirrored. The padding is
    ``"same"`` or ``"valid"``.
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


def placed(array: Array) -> "tf.Tensor":
    """Put numbers where TensorFlow computes: on the GPU where there is one."""
    # What a constant is made of stays in the machine's memory; a result does not.
    return tf.identity(tf.constant(array))


Nested = list[Any]
Call = Callable[[], Any]
Operation = Callable[[Any, Any], Any]
# From images, a kernel and their sizes to the call that is timed.
Build = Callable[[Any, Any, Problem], Call]


@dataclass(frozen=True)
class Method:
    """How a variant computes a convolution.

    What ``build`` does before it gives the call that is timed is set-up. One whose
    answer is another one is ``excluded`` from advice. A reader is shown the lines of
    the ``sources``, or of ``build`` itself. Where Python handles single numbers it is
    ``interpreted``, and may take minutes. The ``scratch`` are bytes that it needs
    besides images, kernel and answer.
    """

    name: str
    build: Build
    do: str
    excluded: bool = False
    sources: tuple[Callable[..., Any], ...] = ()
    against: str = BASELINE
    precision: str = "float32"
    interpreted: bool = False
    scratch: Callable[[Problem], int] = lambda problem: 0

    @functools.cached_property
    def code(self) -> str:
        """Its lines, as a reader types them; "" of a function of one's own."""
        return "" if self.name == OWN else code_of(*self.sources or (self.build,))

    def call(self, problem: Problem, seed: int = 0) -> Call:
        """Make the call that convolves once."""
        return self.build(problem.images(seed), problem.weights(seed), problem)

    def traffic(self, problem: Problem) -> float:
        """Bytes that must be read or written for one image, each of them once."""
        images = problem.side**2 * problem.channels + problem.out**2 * problem.filters
        width = FLOAT if self.precision == "float32" else FLOAT // 2
        return width * (images + problem.taps * problem.filters / problem.batch)


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
    """Give what makes the call of an operation; without ``graph``, from Python."""

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

SHORT = "conv2d bfloat16"
_method(
    SHORT,
    "Call `tf.nn.conv2d` on bfloat16 numbers.",
    excluded=True,
    sources=(functools.partial(rounded, precision="bfloat16"), conv2d),
    precision="bfloat16",
)(calling(conv2d, "bfloat16"))


@_method(
    "as circulated",
    "Run the custom convolution of a tutorial in circulation.",
    excluded=True,
)
def _zeros(images: Array, kernel: Array, problem: Problem) -> Call:
    return lambda: np.zeros(problem.answer_shape, np.float32)


def own_method(function: Callable[[Any, Any, int, str], Any]) -> Method:
    """Make a variant of a function of images, kernel, stride and padding."""

    def build(images: Any, kernel: Any, problem: Problem) -> Call:
        return lambda: function(images, kernel, problem.stride, problem.padding)

    return Method(OWN, build, "Use your own function.", interpreted=True)


CHOICES = {
    method.name: Choice(method.do, functools.partial(getattr, method, "code"))
    for method in VARIANTS.values()
    if not method.excluded
}
CHOICES[OWN] = Choice("Use your own function.", "yours(images, kernel, stride, pad)")
GROUPS = {
    "essential": (
        *(BASELINE, "python loops", "numpy taps", "numpy im2col"),
        *("conv2d in a graph", "conv2d under XLA", SHORT, "as circulated"),
    ),
    "numpy": ("numpy taps", "numpy im2col"),
    "library": ("conv2d in a graph", "conv2d under XLA"),
    "all": tuple(VARIANTS),
}
