"""What a load does, in a process of its own: ``loads`` runs this file.

It works without an end, and yet it cannot stay. The system ends it when its time is
over, and when the process that started it is gone, even while it stands still. Little
is imported here: a load is there in a tenth of a second.
"""

import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable

_CHUNK = 1 << 20
_LOOPS = 100_000
# Large enough to keep a GPU busy, small enough beside a training that fills its memory.
_SIDE, _GPU_MEGABYTES = 4096, 1024
# From <sys/prctl.h>; Python has no name for it.
_PR_SET_PDEATHSIG = 1


def main(words: list[str]) -> None:
    """Do what is asked for, until it is ended.

    The words are which load, seconds until it ends by itself, the number of the process
    it ends with, and what the load needs: bytes or a file.
    """
    load, limit, parent, needs = words
    # No Python is needed for it: unless it is caught, the alarm ends the process.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, float(limit))
    _end_with(int(parent))
    step = WORK[load](needs)
    step()
    # One byte tells that it is at work.
    os.write(1, b".")
    while True:
        step()


def burn(_: str) -> Callable[[], object]:
    """Arithmetic in the smallest cache: it takes a core and nothing else."""
    return lambda: sum(range(_LOOPS))


def copy(size: str) -> Callable[[], object]:
    """Copy an array that no cache holds: it takes a core and the way to memory."""
    source, target = bytearray(b".") * int(size), memoryview(bytearray(int(size)))

    def step() -> None:
        target[:] = source

    return step


def read(path: str) -> Callable[[], object]:
    """Read a file over and over, and let the system forget each piece of it."""
    file = os.open(path, os.O_RDONLY)
    size = max(1, os.fstat(file).st_size)
    buffer, pieces = bytearray(_CHUNK), itertools.cycle(range(0, size, _CHUNK))

    def step() -> None:
        at = next(pieces)
        os.preadv(file, [buffer], at)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file, at, _CHUNK, os.POSIX_FADV_DONTNEED)

    return step


def multiply(_: str) -> Callable[[], object]:
    """Multiply matrices on the first GPU, in a fixed part of its memory."""
    import tensorflow as tf

    gpu = tf.config.list_physical_devices("GPU")[0]
    memory = tf.config.LogicalDeviceConfiguration(memory_limit=_GPU_MEGABYTES)
    tf.config.set_visible_devices(gpu, "GPU")
    tf.config.set_logical_device_configuration(gpu, [memory])
    with tf.device("GPU:0"):
        matrix = tf.ones([_SIDE, _SIDE])
    return lambda: float(tf.linalg.matmul(matrix, matrix)[0, 0])


WORK = {"cpu": burn, "memory": copy, "disk": read, "gpu": multiply}


def _end_with(parent: int) -> None:
    """End when the parent ends, which holds the other end of the standard input."""
    if sys.platform == "linux":
        import ctypes

        # The only thing that ends a process which stands still.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=_end_at_end_of_input, daemon=True).start()


def _end_at_end_of_input() -> None:
    while os.read(0, 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
