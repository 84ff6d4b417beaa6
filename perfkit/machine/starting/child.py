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
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from perfkit.machine.starting.process import Problem

COMPILING = "compiling something tiny with XLA"


def main() -> None:
    """Import TensorFlow, list its devices, and let each of them compute."""
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def tell(**what: Any) -> None:
        told.write(json.dumps(what) + "\n")
        told.flush()

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
    tell(maps=_mapped())
    # Last: XLA ends the process where it is given a flag that it does not know.
    tell(doing=COMPILING)
    _compile(tf)
    tell(compiled=True)


def _compile(tf: ModuleType) -> None:
    double = tf.function(lambda number: number + number, jit_compile=True)
    double(tf.constant(1.0)).numpy()


def _prove(tf: ModuleType, devices: list[str], tell: Any) -> None:
    # At the end of the path: whatever else lies beside perfkit was not asked for.
    sys.path.append(str(Path(__file__).resolve().parents[3]))
    from dataclasses import asdict

    from perfkit.machine.record import Proof
    from perfkit.machine.starting import process

    for problem in process.problems():
        for device in devices:
            tell(doing=f"computing a {problem.computation} on {device}")
            rounding = process.allowed(problem, device, os.environ)
            try:
                result, ran_on = _computed(tf, problem, device)
            except (tf.errors.OpError, RuntimeError, ValueError) as error:
                found = Proof(
                    device=device,
                    computation=problem.computation,
                    allowed=rounding,
                    problem=f"It failed: {_words(error)}",
                )
            else:
                found = process.judged(problem, device, result, ran_on, rounding)
            tell(proof=asdict(found))


def _computed(tf: ModuleType, problem: Problem, device: str) -> tuple[Any, str]:
    """Compute on a device; give the result and where it was computed."""
    from perfkit.machine.starting.process import CONVOLUTION

    with tf.device(f"/{device}"):
        left, right = tf.constant(problem.left), tf.constant(problem.right)
        if problem.computation == CONVOLUTION:
            result = tf.nn.conv2d(left, right, strides=1, padding="SAME")
        else:
            result = tf.linalg.matmul(left, right)
    # `backing_device` is where its memory is, `device` where the operation ran.
    return result.numpy(), result.device.rpartition("/device:")[2]


def _mapped() -> list[str]:
    """The files of shared libraries that this process has loaded; Linux tells them."""
    try:
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    except OSError:
        return []
    paths = {line.partition("/")[2] for line in lines if ".so" in line}
    return sorted(f"/{path}" for path in paths if path)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:2000]


if __name__ == "__main__":
    main()
