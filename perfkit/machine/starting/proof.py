"""Does a device compute rightly? A convolution and a matrix product tell.

They are held against the same in float64. The largest difference that rounding alone
explains is worked out from the numbers: each factor loses its last digits, and each sum
adds roundings of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.machine.record import Proof

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

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
        terms: Products that are added up to one number of the answer.
    """

    computation: str
    left: NDArray[np.float32]
    right: NDArray[np.float32]
    answer: NDArray[np.float64]
    size: NDArray[np.float64]
    terms: int


def problems(seed: int = 20) -> tuple[Problem, ...]:
    """Make both computations; no two of their axes have the same length."""
    import numpy as np

    random = np.random.default_rng(seed)

    def drawn(*shape: int) -> NDArray[np.float32]:
        return random.standard_normal(shape).astype(np.float32)

    images, kernels = drawn(2, 24, 20, 16), drawn(3, 3, 16, 28)
    left, right = drawn(192, 320), drawn(320, 256)
    return (
        Problem(
            CONVOLUTION,
            images,
            kernels,
            convolved(images, kernels),
            convolved(np.abs(images), np.abs(kernels)),
            terms=3 * 3 * 16,
        ),
        Problem(
            PRODUCT,
            left,
            right,
            np.matmul(left, right, dtype=np.float64),
            np.matmul(np.abs(left), np.abs(right), dtype=np.float64),
            terms=320,
        ),
    )


def convolved(
    images: NDArray[np.float32], kernels: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Convolve in float64, the images surrounded by zeros so that they keep their size.

    Args:
        images: Image, row, column, channel.
        kernels: Row, column, channel, kernel; as many rows as columns, an odd number.
    """
    import numpy as np

    edge = kernels.shape[0] // 2
    padded = np.pad(images, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
    padded = padded.astype(np.float64)
    _, rows, columns, _ = images.shape
    answer = np.zeros((*images.shape[:3], kernels.shape[3]))
    for row, line in enumerate(kernels):
        for column, kernel in enumerate(line):
            part = padded[:, row : row + rows, column : column + columns]
            answer += part @ kernel.astype(np.float64)
    return answer


def allowed(problem: Problem, device: str, variables: Mapping[str, str]) -> float:
    """The error that rounding alone explains, as a share of the largest answer.

    Args:
        problem: What was computed.
        device: Where, such as ``"GPU:0"``; there TF32 is how TensorFlow computes.
        variables: The environment, in which coarser rounding may have been asked for.
    """
    import numpy as np

    asked = {variables.get(name, "").upper() for name in _ROUNDING_VARIABLES}
    cut = _CUT_FLOAT32 if device.startswith("CPU") else _CUT_TF32
    if asked - {"", "STRICT"}:
        cut = max(cut, _CUT_BFLOAT16)
    of_each = 2 * cut + problem.terms * _CUT_FLOAT32
    return of_each * float(problem.size.max() / np.abs(problem.answer).max())


def judged(
    problem: Problem,
    device: str,
    result: NDArray[np.float32],
    ran_on: str,
    allowed: float,
) -> Proof:
    """Hold a result against the answer; ``is_right`` says what to make of it.

    Args:
        problem: What was computed.
        device: Where it was asked to run, such as ``"GPU:0"``.
        result: What came of it.
        ran_on: Where it ran.
        allowed: The error that rounding alone explains.
    """
    import numpy as np

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
