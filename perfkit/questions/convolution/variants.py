"""The ways to convolve, a wrong one too, and what a trial of one does.

The right answer is computed in float64, window by window, straight from the definition:
no variant that is timed does it like this. What a way does before it gives its call is
set-up. The lines of the call are what a reader is shown and advised. A way is timed if
its answer is right, and if it comes soon enough to be measured often.
"""

import functools
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from perfkit import units
from perfkit.engine.measurement import OWN
from perfkit.engine.trial import READY, Yielded, every
from perfkit.machine.limits import free_bytes
from perfkit.questions.base import UNWRITTEN, raised
from perfkit.questions.shared import tf
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.verdicts import Choice

Array = NDArray[np.float32]
Exact = NDArray[np.float64]

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
    def traffic(self) -> float:
        """Bytes that must be read or written for one image, each of them once."""
        images = self.side**2 * self.channels + self.out**2 * self.filters
        return FLOAT * (images + self.taps * self.filters / self.batch)

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
    interpreted: bool = False
    scratch: Callable[[Problem], int] = lambda problem: 0

    @functools.cached_property
    def code(self) -> str:
        """Its lines, as a reader types them; "" of a function of one's own."""
        return "" if self.name == OWN else code_of(*self.sources or (self.build,))

    def call(self, problem: Problem, seed: int = 0) -> Call:
        """Make the call that convolves once."""
        return self.build(problem.images(seed), problem.weights(seed), problem)


VARIANTS = dict[str, Method]()


def _method(name: str, do: str, **options: Any) -> Callable[[Build], Build]:
    """Make a variant of what builds its call; see ``Method`` for the rest."""

    def add(build: Build) -> Build:
        VARIANTS[name] = Method(name, build, do, **options)
        return build

    return add


def calling(graph: Callable[[Operation], Operation] | None = None) -> Build:
    """Give what makes the call of ``conv2d``; without ``graph``, from Python."""

    def build(images: Array, kernel: Array, problem: Problem) -> Call:
        numbers, weights = placed(images), placed(kernel)
        convolve = graph(conv2d(problem)) if graph else conv2d(problem)
        return lambda: convolve(numbers, weights)

    return build


def compiled(convolve: Any, **options: Any) -> Any:
    """Make a graph of an operation; ``options`` are as of ``tf.function``."""
    convolve = tf.function(convolve, **options)
    return convolve


def conv2d(problem: Problem) -> Operation:
    """What TensorFlow brings along."""
    # In a small call even looking up a name of ``later`` would show.
    import tensorflow as tf

    stride, padding = problem.stride, problem.padding.upper()

    def convolve(images: Any, kernel: Any) -> Any:
        return tf.nn.conv2d(images, kernel, stride, padding)

    return convolve


_method(BASELINE, "Call `tf.nn.conv2d` from Python.", sources=(conv2d,))(calling())


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
)(calling(compiled))

_XLA = functools.partial(compiled, jit_compile=True)
_method(
    "conv2d under XLA",
    "Compile `tf.nn.conv2d` with XLA.",
    sources=(conv2d, _XLA),
    against="conv2d in a graph",
)(calling(_XLA))


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
        *("conv2d in a graph", "conv2d under XLA", "as circulated"),
    ),
    "numpy": ("numpy taps", "numpy im2col"),
    "library": ("conv2d in a graph", "conv2d under XLA"),
    "all": tuple(VARIANTS),
}


# Half the distance from 1 to the next number that each kind of number can hold; TF32
# is what a GPU may make of the float32 that goes into its tensor cores.
_ROUNDING = {"float32": 2.0**-24, "tf32": 2.0**-11}
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
# How long a call is timed, and how often at most.
_TIMED_S, _TIMES = 0.02, 20
# A time is worked out for large images once a call takes this many of the smallest.
_GROWN = 3.0


def mistake(method: Method, problem: Problem) -> str:
    """Say what is wrong with a variant's answer; "" if right. Raise what it raises."""
    seeds = _SEEDS if method.interpreted else _SEEDS[:1]
    return next(filter(None, (_mistake(method, problem, seed) for seed in seeds)), "")


def _mistake(method: Method, problem: Problem, seed: int) -> str:
    answer = method.call(problem, seed)()
    if answer is None:
        return UNWRITTEN
    numbers = np.asarray(answer).astype(np.float64)
    right, size = _right(problem, seed)
    if numbers.shape != right.shape:
        return f"gives the shape {numbers.shape} instead of {right.shape}"
    wrong = "gives a wrong answer:"
    if count := np.count_nonzero(~np.isfinite(numbers)):
        return f"{wrong} {count:,} of its numbers overflow"
    limit = allowed(size, problem.taps, _precision(answer))
    off = abs(numbers - right).max()
    if off <= limit:
        return ""
    if not numbers.any():
        return f"{wrong} nothing but zeros"
    return f"{wrong} off by up to {off:.2g}; rounding explains {limit:.1g}"


def allowed(size: float, terms: int, precision: str) -> float:
    """The largest difference from the right answer that rounding explains.

    Sums are taken to be made in float32, as they are wherever shorter numbers are
    multiplied well. Without any minus sign the largest answer would have this size.
    """
    summed = _SUMMED * _ROUNDING["float32"] * size
    return summed + _ROUNDED_BEFORE * _ROUNDING[precision] * size / math.sqrt(terms)


@functools.lru_cache(maxsize=2)
def _right(problem: Problem, seed: int) -> tuple[Exact, float]:
    """The right answer and its size, computed once for all variants."""
    images, kernel = problem.images(seed), problem.weights(seed)
    sizes = convolved(abs(images), abs(kernel), problem)
    return convolved(images, kernel, problem), float(sizes.max())


def _precision(answer: Any) -> str:
    """How the numbers were multiplied that gave an answer."""
    if isinstance(answer, np.ndarray | list):
        return "float32"
    short = tf.config.experimental.tensor_float_32_execution_enabled()
    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    return "tf32" if short and on_gpu else "float32"


@dataclass(frozen=True, kw_only=True)
class Check:
    """Why a variant is not timed, or "" and seconds of a call.

    The overhead is the share that a call with next to no arithmetic takes; None where
    it cannot be told.
    """

    why_not: str = ""
    call_s: float = 0.0
    overhead: float | None = None


def try_method(method: Method, problem: Problem, longest_s: float = LONGEST_S) -> Check:
    """Compare a variant's answer with the right one, and time a call of it."""
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
        return Check(why_not=raised(error))
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


# Matrices that keep all cores busy for some milliseconds, and a GPU as well.
_SIDE, _SIDE_ON_GPU = 1024, 8192
# Larger than what the caches of a processor hold.
_NUMBERS = 2**25
# Two are read and one is written.
_MOVED = 3 * FLOAT * _NUMBERS


def multiplying(flops: float) -> Iterator[Yielded]:
    """Multiply large matrices, over and over; so many FLOP count as one example."""
    side = _SIDE_ON_GPU if tf.config.list_logical_devices("GPU") else _SIDE
    matrix = placed(tf.random.normal([side, side]))
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


def convolving(call: Call, images: int) -> Iterator[Yielded]:
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
