"""The variants of a convolution, and which of them give the right answer in time."""

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.engine.measurement import OWN
from perfkit.machine.limits import free_bytes
from perfkit.questions.base import UNWRITTEN, raised
from perfkit.questions.convolution import work
from perfkit.questions.convolution.work import (
    FLOAT,
    Problem,
    calling,
    compiled,
    conv2d,
    convolved,
    rounded,
    wait_for_device,
)
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.later import tf

Array = NDArray[np.float64]

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
    build: Callable[[Any, Any, Problem], Callable[[], Any]]
    changes: str
    do: str = ""
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

    def call(self, problem: Problem, seed: int = 0) -> Callable[[], Any]:
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


_XLA = functools.partial(compiled, jit_compile=True)

VARIANTS = {
    method.name: method
    for method in (
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
            "numpy im2col",
            work.im2col,
            "NumPy: all windows copied into a matrix, one matrix product.",
            "Copy all windows into a matrix in NumPy, and multiply once.",
            against="numpy taps",
            scratch=lambda p: FLOAT * p.batch * p.out**2 * p.taps,
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
            read=lambda planes: np.asarray(planes).transpose(0, 2, 3, 1),
        ),
        Method(
            "keras layer",
            work.keras_layer,
            "keras.layers.Conv2D, called as a function.",
            "Call a `keras.layers.Conv2D`.",
            (work.layer_of, work.call_layer),
        ),
        *(
            Method(
                f"conv2d {precision}",
                calling(conv2d, precision),
                f"tf.nn.conv2d on {precision} numbers.",
                sources=(functools.partial(rounded, precision=precision), conv2d),
                precision=precision,
            )
            for precision in ("bfloat16", "float16")
        ),
        Method(
            "depthwise",
            work.depthwise,
            "Another layer: each channel has one filter of its own.",
            sources=(work.by_channel,),
            solves=lambda p: replace(p, channels=1, filters=p.channels),
            answer=work.convolved_by_channel,
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


def own_method(function: Callable[[Any, Any, int, str], Any]) -> Method:
    """Make a variant of a function of images, kernel, stride and padding."""

    def build(images: Any, kernel: Any, problem: Problem) -> Callable[[], Any]:
        return lambda: function(images, kernel, problem.stride, problem.padding)

    return Method(OWN, build, "Your own function.", interpreted=True)


LIGHTER = ("depthwise",)
SHORT = ("conv2d bfloat16", "conv2d float16")
GROUPS = {
    "essential": (
        *(BASELINE, "python loops", "numpy taps", "numpy im2col", "numpy fft"),
        *("conv2d in a graph", "conv2d under XLA", "keras layer"),
        *("conv2d bfloat16", "as circulated"),
    ),
    "numpy": ("numpy taps", "numpy im2col", "numpy fft"),
    "library": ("conv2d in a graph", "conv2d under XLA", "conv2d NCHW", "keras layer"),
    "precision": SHORT,
    "lighter": LIGHTER,
    "mistakes": (
        *("as circulated", "swapped axes", "wrong padding"),
        *("float16 overflow", "off-by-one stride"),
    ),
    "all": tuple(VARIANTS),
}


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
# An answer that was kept from an earlier call is right for the first numbers only.
_SEEDS = (0, 1)
# A call that takes longer leaves a run of a minute too few of them.
LONGEST_S = 0.3
# What a variant may take of the memory that is free.
_MEMORY_SHARE = 0.25
_MESSAGE = 60
# How long a call is timed, and how often at most.
_TIMED_S, _TIMES = 0.02, 20
# A call that takes so many times what the smallest takes is long for its work.
_GROWN = 3.0


def mistake(method: Method, problem: Problem) -> str:
    """Say what is wrong with a variant's answer; "" if right. Raise what it raises."""
    seeds = _SEEDS if method.interpreted else _SEEDS[:1]
    return next(filter(None, (_mistake(method, problem, seed) for seed in seeds)), "")


def _mistake(method: Method, problem: Problem, seed: int) -> str:
    answer = method.call(problem, seed)()
    if answer is None:
        return UNWRITTEN
    part = method.solves(problem)
    numbers = method.read(answer).astype(np.float64)
    right, size = _right(method.answer, problem, part, seed)
    if numbers.shape != right.shape:
        return f"gives an answer of the shape {numbers.shape} instead of {right.shape}"
    wrong = "gives a wrong answer:"
    if count := np.count_nonzero(~np.isfinite(numbers)):
        return f"{wrong} {count:,} of its numbers are too large to hold"
    images, kernel = method.arrays(problem, seed)
    limit = allowed(size, part.taps, _precision(method, answer))
    off = abs(numbers - right)
    if off.max() <= limit:
        return ""
    if not numbers.any():
        return f"{wrong} nothing but zeros"
    kernels = {
        "it takes the kernel's columns for its rows": kernel.swapaxes(0, 1),
        "it mirrors the kernel": kernel[::-1, ::-1],
    }
    for cause, wrong_kernel in kernels.items():
        if abs(numbers - method.answer(images, wrong_kernel, part)).max() <= limit:
            return f"{wrong} {cause}"
    edges = len(kernel)
    inside = off[:, edges:-edges, edges:-edges]
    where = ", at the edges only" if inside.size and inside.max() <= limit else ""
    return f"{wrong} off by up to {off.max():.2g}{where}; rounding explains {limit:.1g}"


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


@functools.lru_cache(maxsize=2)
def _right(
    answer: Callable[..., Array], problem: Problem, part: Problem, seed: int
) -> tuple[Array, float]:
    """The right answer and its size, computed once for all variants that share it."""
    images, kernel = problem.images(seed), part.weights(seed)
    sizes = answer(abs(images), abs(kernel), part)
    return answer(images, kernel, part), float(sizes.max())


def _precision(method: Method, answer: Any) -> str:
    """How the numbers were multiplied that gave an answer."""
    if method.precision != "float32" or isinstance(answer, np.ndarray | list):
        return method.precision
    short = tf.config.experimental.tensor_float_32_execution_enabled()
    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    return "tf32" if short and on_gpu else "float32"


@dataclass(frozen=True, kw_only=True)
class Check:
    """What came of trying a variant.

    Attributes:
        why_not: Why it is not to be timed; "" where it is.
        call_s: Seconds of a call.
        overhead: The share of a call that one with next to no arithmetic takes; None
            where it cannot be told.
    """

    why_not: str = ""
    call_s: float = 0.0
    overhead: float | None = None


def try_method(method: Method, problem: Problem, longest_s: float = LONGEST_S) -> Check:
    """Hold a variant's answer against the right one, and time a call of it."""
    if (scratch := method.scratch(problem)) > _MEMORY_SHARE * free_bytes():
        needs = f"would take {units.size(scratch)} of memory besides its numbers"
        return Check(why_not=needs)
    try:
        why_not = _too_slow_to_try(method, problem, longest_s)
        why_not = why_not or mistake(method, problem)
        seconds = 0.0 if why_not else call_s(method, problem)
    # Whatever the author of a function did wrong is theirs to read, not the run's end.
    except Exception as error:
        if type(error).__name__ == "UnimplementedError":
            return Check(why_not="TensorFlow cannot compute that on this device")
        return Check(why_not=raised(error, _MESSAGE))
    if why_not := why_not or _too_slow(seconds, longest_s):
        return Check(why_not=why_not)
    return Check(call_s=seconds, overhead=_overhead(method, problem, seconds))


def call_s(method: Method, problem: Problem) -> float:
    """Seconds of a call, the shortest of some after the first."""
    call = method.call(problem)
    call()
    wait_for_device()
    spent = list[float]()
    while len(spent) < _TIMES and sum(spent) < _TIMED_S:
        began = time.perf_counter()
        call()
        wait_for_device()
        spent.append(time.perf_counter() - began)
    return min(spent)


def _overhead(method: Method, problem: Problem, seconds: float) -> float | None:
    """The share of a call that a single window with few channels takes."""
    fewest = replace(problem, batch=1, channels=1, filters=1)
    small = replace(fewest, side=problem.kernel, padding="valid")
    try:
        return min(1.0, call_s(method, small) / seconds)
    # Functions that take no such image exist, and are no less worth timing.
    except Exception:
        return None


def _too_slow_to_try(method: Method, problem: Problem, longest_s: float) -> str:
    """Follow how a call grows with its image, where a whole one may take minutes."""
    if not method.interpreted:
        return ""
    first_s, first_work, side = 0.0, 0, problem.kernel
    # The same convolution of one image, from a few pixels on.
    while side < problem.side:
        small = replace(problem, batch=1, side=side)
        seconds, work = call_s(method, small), small.flops
        if first_s and seconds > _GROWN * first_s:
            per_flop = (seconds - first_s) / (work - first_work)
            total_s = per_flop * problem.batch * problem.flops
            if slow := _too_slow(total_s, longest_s):
                return slow
        first_s, first_work = first_s or seconds, first_work or work
        side *= 2
    return ""


def _too_slow(seconds: float, longest_s: float) -> str:
    if seconds <= longest_s:
        return ""
    return f"takes about {units.seconds(seconds)} a call, too long to be timed here"
