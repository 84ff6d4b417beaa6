"""The process that starts TensorFlow: it tells what comes of it, a JSON line each.

It is run as a script, so that nothing is imported before TensorFlow that a training
would not import. What it tells goes where its standard output went; everything that
anybody prints goes to standard error, beside TensorFlow's log.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    import numpy as np
    from numpy.typing import NDArray

    from perfkit.machine.record import Proof

COMPILING = "compiling something tiny with XLA"


def main() -> None:
    """Import TensorFlow, list its devices, and let each of them compute."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def tell(**message: Any) -> None:
        output.write(json.dumps(message) + "\n")
        output.flush()

    def tell_error(_: object, error: BaseException, __: object) -> None:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        tell(error=_words(error), missing=missing)

    # A package that was built for something else may raise whatever it likes.
    sys.excepthook = tell_error
    tell(doing="importing TensorFlow")
    began = time.perf_counter()
    import tensorflow

    tell(seconds=time.perf_counter() - began)
    _watch(tensorflow, tell)
    # Taking TensorFlow apart takes seconds, and nothing is left to do.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _end_with_parent() -> None:
    """Wait until nobody holds the other end of standard input any more."""
    while os.read(0, 1):
        pass
    os._exit(1)


def _watch(tf: ModuleType, tell: Any) -> None:
    tell(doing="preparing its devices")
    tf.config.set_soft_device_placement(False)
    # Nobody else shall be short of memory because a proof is going on.
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    devices = tf.config.list_logical_devices()
    names = [device.name.rpartition("/device:")[2] for device in devices]
    tell(devices=names)
    _prove(tf, names, tell)
    # Apple's plugin has no XLA, and there Keras asks for none.
    if sys.platform != "darwin" or not any(name.startswith("GPU") for name in names):
        # Last: XLA ends the process where it is given a flag that it does not know.
        tell(doing=COMPILING)
        double = tf.function(lambda number: number + number, jit_compile=True)
        double(tf.constant(1.0)).numpy()
    tell(compiled=True)


def _prove(tf: ModuleType, devices: list[str], tell: Any) -> None:
    # At the end of the path: whatever else lies beside perfkit was not asked for.
    sys.path.append(str(Path(__file__).resolve().parents[3]))
    from perfkit.machine.record import Proof

    for problem in problems():
        for device in devices:
            tell(doing=f"computing a {problem.computation} on {device}")
            rounding = allowed(problem, device, os.environ)
            try:
                result, ran_on = _computed(tf, problem, device)
            except (tf.errors.OpError, RuntimeError, ValueError) as error:
                proof = Proof(
                    device=device,
                    computation=problem.computation,
                    allowed=rounding,
                    problem=f"It failed: {_words(error)}",
                )
            else:
                proof = judged(problem, device, result, ran_on, rounding)
            tell(proof=asdict(proof))


def _computed(tf: ModuleType, problem: Problem, device: str) -> tuple[Any, str]:
    """Compute on a device; give the result and where it was computed."""
    with tf.device(f"/{device}"):
        left, right = tf.constant(problem.left), tf.constant(problem.right)
        if problem.computation == CONVOLUTION:
            result = tf.nn.conv2d(left, right, strides=1, padding="SAME")
        else:
            result = tf.linalg.matmul(left, right)
    # `backing_device` is where its memory is, `device` where the operation ran.
    return result.numpy(), result.device.rpartition("/device:")[2]


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:2000]


# The share of a number that is lost where its digits are cut off.
_CUT_FLOAT32, _CUT_TF32, _CUT_BFLOAT16 = 2.0**-23, 2.0**-10, 2.0**-7
# oneDNN may be asked to round on a CPU as well, under either name.
_ROUNDING_VARIABLES = ("TF_SET_ONEDNN_FPMATH_MODE", "ONEDNN_DEFAULT_FPMATH_MODE")
CONVOLUTION, PRODUCT = "convolution", "matrix product"


@dataclass(frozen=True, eq=False)
class Problem:
    """Something to compute, with its answer.

    Attributes:
        computation: What it is, as ``Proof.computation`` has it.
        left: Images (image, row, column, channel), or a matrix; float32.
        right: Kernels (row, column, channel, kernel), or a matrix; float32.
        answer: In float64; a convolution keeps the size of the images.
        size: The same with every factor made positive: what a sum is made of.
    """

    computation: str
    left: NDArray[np.float32]
    right: NDArray[np.float32]
    answer: NDArray[np.float64]
    size: NDArray[np.float64]


def problems() -> tuple[Problem, ...]:
    """Make both computations; no two of their axes have the same length."""
    import numpy as np

    random = np.random.default_rng(20)

    def draw(*shape: int) -> NDArray[np.float32]:
        return random.standard_normal(shape).astype(np.float32)

    pairs = (
        (CONVOLUTION, convolved, draw(2, 24, 20, 16), draw(3, 3, 16, 28)),
        (PRODUCT, _multiplied, draw(192, 320), draw(320, 256)),
    )
    return tuple(
        Problem(
            computation,
            left,
            right,
            compute(left, right),
            compute(np.abs(left), np.abs(right)),
        )
        for computation, compute, left, right in pairs
    )


def _multiplied(
    left: NDArray[np.float32], right: NDArray[np.float32]
) -> NDArray[np.float64]:
    product: NDArray[np.float64] = left.astype("float64") @ right.astype("float64")
    return product


def convolved(
    images: NDArray[np.float32], kernels: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Convolve in float64, the images surrounded by zeros so that they keep their size.

    Their axes are those of ``Problem``; a kernel has as many rows as columns, an odd
    number.
    """
    import numpy as np

    edge = kernels.shape[0] // 2
    padded = np.pad(images, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(
        padded.astype(np.float64), kernels.shape[:2], axis=(1, 2)
    )
    answer: NDArray[np.float64] = np.tensordot(
        windows, kernels.astype(np.float64), axes=((4, 5, 3), (0, 1, 2))
    )
    return answer


def allowed(problem: Problem, device: str, variables: Mapping[str, str]) -> float:
    """The error that rounding alone explains, as a share of the largest answer.

    On a GPU TF32 is how TensorFlow computes; the environment may ask for a coarser one.
    """
    import numpy as np

    requests = {variables.get(name, "").upper() for name in _ROUNDING_VARIABLES}
    cut = _CUT_FLOAT32 if device.startswith("CPU") else _CUT_TF32
    if requests - {"", "STRICT"}:
        cut = max(cut, _CUT_BFLOAT16)
    # So many products are added up to one number of the answer.
    of_each = 2 * cut + problem.right[..., 0].size * _CUT_FLOAT32
    return of_each * float(problem.size.max() / np.abs(problem.answer).max())


def judged(
    problem: Problem,
    device: str,
    result: NDArray[np.float32],
    ran_on: str,
    allowed: float,
) -> Proof:
    """Hold a result against the answer; ``is_right`` says what to make of it."""
    import numpy as np

    from perfkit.machine.record import Proof

    error, wrong = None, ""
    if result.shape != problem.answer.shape:
        shapes = ("×".join(map(str, a.shape)) for a in (result, problem.answer))
        wrong = "The result has the shape {}, not {}.".format(*shapes)
    elif bad := int(np.sum(~np.isfinite(result))):
        wrong = f"{bad} of {result.size} numbers of the result are not finite."
    else:
        largest = np.abs(problem.answer).max()
        error = float(np.abs(result - problem.answer).max() / largest)
    return Proof(
        device=device,
        computation=problem.computation,
        ran_on=ran_on,
        error=error,
        allowed=allowed,
        problem=wrong,
    )


def is_right(proof: Proof) -> bool:
    """Whether the device itself computed, and computed right."""
    computed = proof.error is not None and proof.error <= proof.allowed
    return computed and proof.ran_on == proof.device and not proof.problem


if __name__ == "__main__":
    main()
