"""The variants of a convolution, by name, and the groups they are asked for in."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfkit.experiments.convolution import work
from perfkit.experiments.convolution.problem import FLOAT, Problem, convolved
from perfkit.experiments.convolution.work import (
    calling,
    compiled,
    conv2d,
    rounded,
    tensor_taps,
)
from perfkit.experiments.shared.code import code_of
from perfkit.measure.measurement import OWN

BASELINE = "conv2d"


@dataclass(frozen=True)
class Method:
    """How a variant computes a convolution.

    Attributes:
        name: Its name.
        build: From images, a kernel and their sizes to the call that is timed; what it
            does before is set-up.
        changes: What it changes, in a sentence.
        do: What choosing it means, as a sentence; "" where it does not give the full
            convolution in float32 and is never advised.
        shown: The functions whose lines a reader is shown; none for ``build`` itself.
        against: The variant it is compared with.
        precision: Of the numbers that it multiplies.
        interpreted: Whether Python handles single numbers, which may take minutes.
        solves: The problem that it solves, from the one that is asked.
        answer: The right answer in float64.
        read: Puts its answer into the order (batch, row, column, filter).
        scratch: Bytes that it needs besides images, kernel and answer.
        why_not: Says why it cannot solve a problem; "" where it can.
    """

    name: str
    build: Callable[[Any, Any, Problem], Callable[[], Any]]
    changes: str
    do: str = ""
    shown: tuple[Callable[..., Any], ...] = ()
    against: str = BASELINE
    precision: str = "float32"
    interpreted: bool = False
    solves: Callable[[Problem], Problem] = lambda problem: problem
    answer: Callable[[Any, Any, Problem], Any] = convolved
    read: Callable[[Any], Any] = np.asarray
    scratch: Callable[[Problem], int] = lambda problem: 0
    why_not: Callable[[Problem], str] = lambda problem: ""

    @functools.cached_property
    def code(self) -> str:
        """Its lines, as a reader types them; "" of a function of one's own."""
        return "" if self.name == OWN else code_of(*self.shown or (self.build,))

    def arrays(self, problem: Problem, seed: int) -> tuple[Any, Any]:
        """Draw the images, the same for all variants, and a kernel of its own shape."""
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


_XLA = functools.partial(compiled, jit_compile=True)

VARIANTS = {
    one.name: one
    for one in (
        Method(
            BASELINE,
            calling(conv2d),
            "tf.nn.conv2d, called from Python.",
            "Call `tf.nn.conv2d` from Python.",
            (conv2d,),
        ),
        Method(
            "python loops",
            work.python_loops,
            "A Python loop over every number.",
            "Convolve in Python loops.",
            (work.one_pixel,),
            interpreted=True,
        ),
        Method(
            "numpy taps",
            work.taps,
            "NumPy: a loop over the kernel, a matrix product for each tap.",
            "Loop over the kernel in NumPy, a matrix product for each tap.",
        ),
        Method(
            "numpy windows",
            work.windows,
            "NumPy: a view of all windows, summed by einsum.",
            "View all windows in NumPy, and sum them with `einsum`.",
            against="numpy taps",
            scratch=work.windows_bytes,
        ),
        Method(
            "numpy im2col",
            work.im2col,
            "NumPy: all windows copied into a matrix, one matrix product.",
            "Copy all windows into a matrix in NumPy, and multiply once.",
            against="numpy taps",
            scratch=work.windows_bytes,
        ),
        Method(
            "numpy fft",
            work.fft,
            "NumPy: a product of frequencies.",
            "Multiply frequencies in NumPy.",
            against="numpy taps",
            scratch=work.fft_bytes,
        ),
        Method(
            "tensorflow taps",
            calling(tensor_taps),
            "The loop over the kernel in TensorFlow operations, eager.",
            "Loop over the kernel in TensorFlow.",
            (tensor_taps,),
            "numpy taps",
        ),
        Method(
            "taps in a graph",
            calling(tensor_taps, graph=compiled),
            "The same operations in a tf.function.",
            "Loop over the kernel in a `tf.function`.",
            (tensor_taps, compiled),
            "tensorflow taps",
        ),
        Method(
            "taps under XLA",
            calling(tensor_taps, graph=_XLA),
            "The same tf.function with jit_compile=True.",
            "Loop over the kernel in a `tf.function`, and compile it.",
            (tensor_taps, _XLA),
            "taps in a graph",
        ),
        Method(
            "conv2d in a graph",
            calling(conv2d, graph=compiled),
            "tf.nn.conv2d in a tf.function.",
            "Call `tf.nn.conv2d` in a `tf.function`.",
            (conv2d, compiled),
        ),
        Method(
            "conv2d under XLA",
            calling(conv2d, graph=_XLA),
            "The same tf.function with jit_compile=True.",
            "Compile `tf.nn.conv2d` with XLA.",
            (conv2d, _XLA),
            "conv2d in a graph",
        ),
        Method(
            "conv2d NCHW",
            work.channels_first,
            "tf.nn.conv2d with the channels first.",
            "Put the channels first.",
            (functools.partial(conv2d, data_format="NCHW"),),
            read=work.in_the_usual_order,
        ),
        Method(
            "keras layer",
            work.keras_layer,
            "keras.layers.Conv2D, called as a function.",
            "Call a `keras.layers.Conv2D`.",
            (work.layer_of, work.called),
        ),
        *(
            Method(
                f"conv2d {precision}",
                calling(conv2d, precision),
                f"tf.nn.conv2d on {precision} numbers.",
                shown=(functools.partial(rounded, precision=precision), conv2d),
                precision=precision,
            )
            for precision in ("bfloat16", "float16")
        ),
        Method(
            "grouped",
            calling(conv2d),
            f"Another layer: each filter sees 1/{work.GROUPS} of the channels.",
            shown=(conv2d,),
            solves=work.in_groups,
            answer=work.convolved_in_groups,
            why_not=work.why_not_in_groups,
        ),
        Method(
            "depthwise",
            work.depthwise,
            "Another layer: each channel has one filter of its own.",
            shown=(work.by_channel,),
            solves=work.per_channel,
            answer=work.convolved_in_groups,
        ),
        Method(
            "as circulated",
            work.zeros,
            "The custom convolution of a tutorial in circulation.",
        ),
        Method(
            "swapped axes",
            work.swapped_axes,
            "The kernel's columns taken for its rows.",
        ),
        Method(
            "wrong padding",
            work.wrong_padding,
            "One row and column of zeros too many before the image.",
        ),
        Method(
            "float16 overflow",
            work.float16_overflow,
            "Sums of scaled products in float16.",
            precision="float16",
        ),
        Method(
            "off-by-one stride",
            work.off_by_one_stride,
            "One pixel too many from window to window.",
        ),
    )
}


def own(function: Callable[[Any, Any, int, str], Any]) -> Method:
    """Make a variant of a function of images, kernel, stride and padding."""

    def build(images: Any, kernel: Any, problem: Problem) -> Callable[[], Any]:
        return lambda: function(images, kernel, problem.stride, problem.padding)

    return Method(OWN, build, "Your own function.", interpreted=True)


LIGHTER = ("grouped", "depthwise")
SHORT = ("conv2d bfloat16", "conv2d float16")
GROUPS = {
    "essential": (
        *(BASELINE, "python loops", "numpy taps", "numpy im2col", "numpy fft"),
        *("conv2d in a graph", "conv2d under XLA", "keras layer"),
        *("conv2d bfloat16", "as circulated"),
    ),
    "numpy": ("numpy taps", "numpy windows", "numpy im2col", "numpy fft"),
    "tensorflow": (
        *("numpy taps", "tensorflow taps", "taps in a graph", "taps under XLA"),
    ),
    "library": ("conv2d in a graph", "conv2d under XLA", "conv2d NCHW", "keras layer"),
    "precision": SHORT,
    "lighter": LIGHTER,
    "mistakes": (
        *("as circulated", "swapped axes", "wrong padding"),
        *("float16 overflow", "off-by-one stride"),
    ),
    "all": tuple(VARIANTS),
}
