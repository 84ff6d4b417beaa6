"""The ways to compute a convolution, by name, and the groups they are asked for in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfkit.experiments.convolution import arrays as convolution_arrays
from perfkit.experiments.convolution import library, reference, tensors
from perfkit.experiments.convolution.problem import FLOAT

if TYPE_CHECKING:
    from perfkit.experiments.convolution.problem import Problem

BASELINE = "conv2d"
OWN = "yours"

# From images, a kernel and their sizes to a call that convolves them once.
Build = Callable[[Any, Any, "Problem"], Callable[[], Any]]


def _as_it_is(answer: Any) -> Any:
    return answer


def _itself(problem: Problem) -> Problem:
    return problem


def _no_reason(problem: Problem) -> str:
    return ""


def _no_bytes(problem: Problem) -> int:
    return 0


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to compute a convolution.

    Attributes:
        name: Its name.
        build: Makes the call that is timed; what it does before is set-up.
        changes: What it changes, in a sentence.
        against: The way it is compared with.
        precision: Of the numbers that it multiplies.
        counts: Whether it gives the full convolution in float32 and may be called the
            fastest way.
        interpreted: Whether Python handles single numbers, which may take minutes.
        solves: The problem that it solves, from the one that is asked.
        answer: The right answer in float64.
        read: Puts its answer into the order (batch, row, column, filter).
        scratch: Bytes that it needs besides images, kernel and answer.
        unfit: Says of a problem why it cannot solve it.
    """

    name: str
    build: Build
    changes: str
    against: str = BASELINE
    precision: str = "float32"
    counts: bool = True
    interpreted: bool = False
    solves: Callable[[Problem], Problem] = _itself
    answer: Callable[[Any, Any, Problem], Any] = reference.convolved
    read: Callable[[Any], Any] = _as_it_is
    scratch: Callable[[Problem], int] = _no_bytes
    unfit: Callable[[Problem], str] = _no_reason

    def arrays(self, problem: Problem, seed: int) -> tuple[Any, Any]:
        """Draw the images, the same for all ways, and a kernel of its own shape."""
        return problem.images(seed), self.solves(problem).weights(seed)

    def call(self, problem: Problem, seed: int = 0) -> Callable[[], Any]:
        """Make the call that convolves once."""
        return self.build(*self.arrays(problem, seed), self.solves(problem))

    def flops(self, problem: Problem) -> int:
        """Multiplications and additions for one image."""
        return self.solves(problem).flops

    def traffic(self, problem: Problem) -> float:
        """Bytes that must be read or written for one image, each of them once."""
        own = self.solves(problem)
        images = problem.side**2 * problem.channels + own.out**2 * own.filters
        width = FLOAT if self.precision == "float32" else FLOAT // 2
        return width * (images + own.taps * own.filters / problem.batch)


_ALL = (
    Way(
        name=BASELINE,
        build=library.eager,
        changes="tf.nn.conv2d, called from Python.",
    ),
    Way(
        name="python loops",
        build=convolution_arrays.python_loops,
        changes="A Python loop over every number.",
        interpreted=True,
    ),
    Way(
        name="numpy taps",
        build=convolution_arrays.taps,
        changes="NumPy: a loop over the kernel, a matrix product for each tap.",
    ),
    Way(
        name="numpy windows",
        build=convolution_arrays.windows,
        changes="NumPy: a view of all windows, summed by einsum.",
        against="numpy taps",
        scratch=convolution_arrays.windows_bytes,
    ),
    Way(
        name="numpy im2col",
        build=convolution_arrays.im2col,
        changes="NumPy: all windows copied into a matrix, one matrix product.",
        against="numpy taps",
        scratch=convolution_arrays.windows_bytes,
    ),
    Way(
        name="numpy fft",
        build=convolution_arrays.fft,
        changes="NumPy: a product of frequencies.",
        against="numpy taps",
        scratch=convolution_arrays.fft_bytes,
    ),
    Way(
        name="tensorflow taps",
        build=tensors.eager,
        changes="The loop over the kernel in TensorFlow operations, eager.",
        against="numpy taps",
    ),
    Way(
        name="taps in a graph",
        build=tensors.in_a_graph,
        changes="The same operations in a tf.function.",
        against="tensorflow taps",
    ),
    Way(
        name="taps under XLA",
        build=tensors.under_xla,
        changes="The same tf.function with jit_compile=True.",
        against="taps in a graph",
    ),
    Way(
        name="conv2d in a graph",
        build=library.in_a_graph,
        changes="tf.nn.conv2d in a tf.function.",
    ),
    Way(
        name="conv2d under XLA",
        build=library.under_xla,
        changes="The same tf.function with jit_compile=True.",
        against="conv2d in a graph",
    ),
    Way(
        name="conv2d NCHW",
        build=library.channels_first,
        changes="tf.nn.conv2d with the channels first.",
        read=library.in_the_usual_order,
    ),
    Way(
        name="keras layer",
        build=library.keras_layer,
        changes="keras.layers.Conv2D, called as a function.",
    ),
    Way(
        name="conv2d bfloat16",
        build=library.bfloat16,
        changes="tf.nn.conv2d on bfloat16 numbers.",
        precision="bfloat16",
        counts=False,
    ),
    Way(
        name="conv2d float16",
        build=library.float16,
        changes="tf.nn.conv2d on float16 numbers.",
        precision="float16",
        counts=False,
    ),
    Way(
        name="grouped",
        build=library.grouped,
        changes=f"Another layer: each filter sees 1/{library.GROUPS} of the channels.",
        counts=False,
        solves=library.in_groups,
        answer=library.convolved_in_groups,
        unfit=library.why_not_in_groups,
    ),
    Way(
        name="depthwise",
        build=library.depthwise,
        changes="Another layer: each channel has one filter of its own.",
        counts=False,
        solves=library.per_channel,
        answer=library.convolved_in_groups,
    ),
    Way(
        name="as circulated",
        build=convolution_arrays.zeros,
        changes="The custom convolution of a tutorial in circulation.",
        counts=False,
    ),
    Way(
        name="swapped axes",
        build=convolution_arrays.swapped_axes,
        changes="The kernel's columns taken for its rows.",
        counts=False,
    ),
    Way(
        name="wrong padding",
        build=convolution_arrays.wrong_padding,
        changes="One row and column of zeros too many before the image.",
        counts=False,
    ),
    Way(
        name="float16 overflow",
        build=convolution_arrays.float16_overflow,
        changes="Sums of scaled products in float16.",
        precision="float16",
        counts=False,
    ),
    Way(
        name="off-by-one stride",
        build=convolution_arrays.off_by_one_stride,
        changes="One pixel too many from window to window.",
        counts=False,
    ),
)

WAYS = {way.name: way for way in _ALL}


def own(function: Callable[[Any, Any, int, str], Any]) -> Way:
    """Make a way of a function of images, kernel, stride and padding."""

    def build(images: Any, kernel: Any, problem: Problem) -> Callable[[], Any]:
        return lambda: function(images, kernel, problem.stride, problem.padding)

    return Way(name=OWN, build=build, changes="Your own function.", interpreted=True)


_NUMPY = ("numpy taps", "numpy windows", "numpy im2col", "numpy fft")
_TAPS = ("tensorflow taps", "taps in a graph", "taps under XLA")
_CONV2D = ("conv2d in a graph", "conv2d under XLA", "conv2d NCHW", "keras layer")
_SHORT = ("conv2d bfloat16", "conv2d float16")
_LIGHTER = ("grouped", "depthwise")
_MISTAKES = (
    *("as circulated", "swapped axes", "wrong padding"),
    *("float16 overflow", "off-by-one stride"),
)
GROUPS = {
    "essential": (
        *(BASELINE, "python loops", "numpy taps", "numpy im2col", "numpy fft"),
        *("conv2d in a graph", "conv2d under XLA", "keras layer"),
        *("conv2d bfloat16", "as circulated"),
    ),
    "numpy": _NUMPY,
    "tensorflow": ("numpy taps", *_TAPS),
    "library": _CONV2D,
    "precision": _SHORT,
    "lighter": _LIGHTER,
    "mistakes": _MISTAKES,
    "all": tuple(WAYS),
}
