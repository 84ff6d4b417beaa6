"""A process, watched from outside: it may crash, hang, or print without an end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from perfkit.machine.record import Proof

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray


# Of each end of what is printed; more explains nothing more.
_KEPT = 1 << 19
# What lies in a pipe that nobody writes to any more is there at once.
_REST_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process ended.

    Attributes:
        told: The beginning and the end of its standard output.
        log: The same of its standard error.
        code: Its exit code; the negative number of the signal that ended it.
        late: Whether it was ended because its time was over.
    """

    told: str
    log: str
    code: int
    late: bool


def watched(
    command: Sequence[str], variables: Mapping[str, str], limit: float
) -> Ended:
    """Run a command to its end, or for so many seconds; nothing it started stays.

    Its standard input stays open for as long as somebody waits for it.

    Raises:
        OSError: It cannot be started.
    """
    process = subprocess.Popen(
        command,
        env=dict(variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    told, log = _Kept(process.stdout), _Kept(process.stderr)
    late = False
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        late = True
    finally:
        _end(process)
        process.stdin.close()
    return Ended(told=told.text(), log=log.text(), code=process.wait(), late=late)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and its group, which may go on when it has ended itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    process.wait()


class _Kept:
    """Reads a pipe to its end and keeps the beginning and the end of what came."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._first, self._last = bytearray(), bytearray()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        while part := os.read(self._pipe.fileno(), 1 << 16):
            room = _KEPT - len(self._first)
            self._first += part[:room]
            self._last += part[room:]
            del self._last[:-_KEPT]
        self._pipe.close()

    def text(self) -> str:
        self._reading.join(_REST_S)
        parts = (bytes(part) for part in (self._first, self._last) if part)
        return "\n".join(part.decode(errors="replace") for part in parts)


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

    pairs = (
        (CONVOLUTION, convolved, drawn(2, 24, 20, 16), drawn(3, 3, 16, 28)),
        (PRODUCT, _multiplied, drawn(192, 320), drawn(320, 256)),
    )
    return tuple(
        Problem(
            computation,
            left,
            right,
            compute(left, right),
            compute(np.abs(left), np.abs(right)),
            terms=right[..., 0].size,
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

    Args:
        images: Image, row, column, channel.
        kernels: Row, column, channel, kernel; as many rows as columns, an odd number.
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
    """Hold a result against the answer; ``is_right`` says what to make of it."""
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
